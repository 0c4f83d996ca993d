import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { projectRoot } from '../bootstrap/project.mjs';
import { IMAGE_NAMES } from './stage/contents.mjs';
import { BUDGET_BYTES, gzipSize } from './stage/measure.mjs';
import { stageImage } from './stage/stage-image.mjs';

/*
 * Writes the folder that the Dockerfile's final stage copies. With --measure it prints the size of
 * each service as a gzipped layer.
 */

const USAGE = `usage: node tools/deploy/stage.mjs SERVICE --to FOLDER [--arch x64|arm64]
       node tools/deploy/stage.mjs --measure [SERVICE…]
services: ${IMAGE_NAMES.join(', ')}`;
const ARCHITECTURES = { x64: 'x64', amd64: 'x64', arm64: 'arm64' };

const refuse = (message) => {
  console.error(`${message}\n${USAGE}`);
  process.exit(2);
};

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** Prints the size of each service, and marks those over the budget. */
const measureAll = async (names, arch) => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-stage-'));
  try {
    for (const name of names) {
      const target = join(folder, name);
      stageImage({ root: projectRoot, name, target, arch });
      const bytes = await gzipSize(target);
      console.log(
        `${name.padEnd(10)} ${megabytes(bytes).padStart(9)}${bytes > BUDGET_BYTES ? `  over ${megabytes(BUDGET_BYTES)}` : ''}`,
      );
      rmSync(target, { recursive: true });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    to: { type: 'string' },
    arch: { type: 'string', default: process.arch },
    measure: { type: 'boolean' },
  },
});
const arch = ARCHITECTURES[values.arch] ?? refuse(`no images are made for ${values.arch}`);
const unknown = positionals.find((name) => !IMAGE_NAMES.includes(name));
if (unknown !== undefined) refuse(`there is no service ${unknown}`);

if (values.measure) await measureAll(positionals.length > 0 ? positionals : IMAGE_NAMES, arch);
else if (positionals.length !== 1 || values.to === undefined) refuse('one service and a folder are needed');
else stageImage({ root: projectRoot, name: positionals[0], target: resolve(values.to), arch });
