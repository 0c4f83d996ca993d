import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { settingTables } from '../../libs/platform/config/dist/index.js';
import { withSettings } from './render-settings.mjs';

/* Writes the tables of settings in docs/contract.md. It runs by `npm run generate:settings`. */
const FILE = join(import.meta.dirname, '../../docs/contract.md');
writeFileSync(FILE, withSettings(readFileSync(FILE, 'utf8'), settingTables()));
