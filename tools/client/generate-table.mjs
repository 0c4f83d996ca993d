import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROUTE_GROUPS, SOCKET_METHODS } from '../../libs/contracts/dist/reference/index.js';
import { renderProtocol } from './python-types.mjs';
import { renderTable } from './render-table.mjs';

/*
 * Writes the names, paths and rules of every route and method for `@antiphon/client`, which does
 * not load the schemas. Run it by `npm run generate:client` after a build.
 */
const FILE = join(import.meta.dirname, '../../libs/client/reference-table.ts');
writeFileSync(FILE, renderTable(Object.assign({}, ...ROUTE_GROUPS), SOCKET_METHODS));

const PROTOCOL = join(import.meta.dirname, '../../clients/python/src/antiphon/protocol.py');
writeFileSync(PROTOCOL, renderProtocol());
