#!/usr/bin/env node
// Runs the CLI on the Node 24 that is installed with the packages, whichever Node runs this file.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';

const root = new URL('../../../', import.meta.url);
const main = new URL('apps/cli/dist/main.js', root);
const installedNode = fileURLToPath(new URL('node_modules/.bin/node', root));

if (!existsSync(main)) {
  console.error(
    'antiphon: this clone is not built yet.\nWhat to do: run `npm start` once; it installs and builds.',
  );
  process.exit(1);
}
if (Number(process.versions.node.split('.')[0]) >= 24 || !existsSync(installedNode)) {
  // Saves compiling the same modules at each start. Node 20 lacks it; a read-only folder disables
  // it.
  module.enableCompileCache?.();
  await import(main);
} else {
  const args = [fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  const { status, signal } = spawnSync(installedNode, args, { stdio: 'inherit' });
  process.exit(signal ? 1 : (status ?? 1));
}
