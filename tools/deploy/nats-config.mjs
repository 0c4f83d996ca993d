import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectRoot } from '../bootstrap/project.mjs';

/*
 * Writes the NATS configuration of the containers from the compiled code. With --check it writes
 * nothing, and exits with 1 when a committed file differs.
 */

/** Two copies, because Kustomize reads no file outside its folder. */
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
    console.error(`${file} differs from permissions.ts: run node tools/deploy/nats-config.mjs`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else
  for (const file of stale) {
    mkdirSync(dirname(join(projectRoot, file)), { recursive: true });
    writeFileSync(join(projectRoot, file), wanted);
    console.log(`wrote ${file}`);
  }
