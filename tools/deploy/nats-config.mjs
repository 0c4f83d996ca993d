import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectRoot } from '../bootstrap/project.mjs';

/*
 *   node tools/deploy/nats-config.mjs           writes the NATS configuration of the containers, from the compiled code
 *   node tools/deploy/nats-config.mjs --check   exit code 1 when a committed one is another
 */

/** Kustomize reads no file outside of its folder, so there are two copies. */
const FILES = ['deploy/nats.conf', 'k8s/overlays/local/engines/nats.conf'];

const { containerNatsConfig } = await import('@antiphon/stack');
const wanted = containerNatsConfig();
const stale = FILES.filter((file) => {
  try {
    return readFileSync(join(projectRoot, file), 'utf8') !== wanted;
  } catch (error) {
    if (error.code === 'ENOENT') return true;
    throw error;
  }
});

if (process.argv.includes('--check')) {
  for (const file of stale)
    console.error(`${file} is not what permissions.ts says: run node tools/deploy/nats-config.mjs`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else
  for (const file of stale) {
    mkdirSync(dirname(join(projectRoot, file)), { recursive: true });
    writeFileSync(join(projectRoot, file), wanted);
    console.log(`wrote ${file}`);
  }
