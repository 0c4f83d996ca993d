import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HTTP_ROUTES, SOCKET_METHODS } from '../../libs/contracts/dist/reference/index.js';
import { settingTables } from '../../libs/platform/config/dist/index.js';
import { withEvidence } from './render-evidence.mjs';
import { librariesIn, withFolders } from './render-folders.mjs';
import { withReference } from './render-reference.mjs';
import { withSettings } from './render-settings.mjs';
import { shownTests } from './shown-tests.mjs';

/* Writes the generated parts of the documents. Run it by `npm run generate:docs` after a build. */
const ROOT = join(import.meta.dirname, '../..');
const rewrite = (name, change) => {
  const file = join(ROOT, 'docs', name);
  writeFileSync(file, change(readFileSync(file, 'utf8')));
};

rewrite('contract.md', (text) =>
  withReference(withSettings(text, settingTables()), { methods: SOCKET_METHODS, routes: HTTP_ROUTES }),
);
rewrite('architecture.md', (text) => withFolders(text, librariesIn(ROOT)));

const evidence = JSON.parse(readFileSync(join(ROOT, 'docs/evidence.json'), 'utf8'));
const shown = shownTests(ROOT);
for (const [document, tables] of Object.entries(evidence))
  rewrite(`${document}.md`, (text) => withEvidence(text, tables, shown));
