#!/usr/bin/env node
// The command runs on the Node 24 that is installed with the packages, whatever Node `npx` itself uses.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const main = `${root}/apps/cli/dist/main.js`;
const local = `${root}/node_modules/.bin/node`;

if (!existsSync(main)) {
  console.error(
    'antiphon: this clone is not built yet.\nWhat to do: run `npm start` once; it installs and builds.',
  );
  process.exit(1);
}
if (Number(process.versions.node.split('.')[0]) >= 24 || !existsSync(local)) await import(main);
else {
  const { status, signal } = spawnSync(local, [main, ...process.argv.slice(2)], { stdio: 'inherit' });
  process.exit(signal ? 1 : (status ?? 1));
}
