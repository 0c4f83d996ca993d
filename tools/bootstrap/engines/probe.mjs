import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { runCommand } from '../processes.mjs';
import { isAtLeast } from './engine-specs.mjs';

const PROBE_MS = 15_000;

const isExecutable = (path) => {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false; // missing, or not executable for this user
  }
};

/**
 * Returns the real folder of a program on PATH, or null.
 * @type {import('../types.js').FindOnPath}
 */
export const findOnPath = (program, path = process.env.PATH ?? '') => {
  const found = path
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, program))
    .find(isExecutable);
  return found === undefined ? null : dirname(realpathSync(found));
};

/**
 * Checks that a version is new enough and, where data exists, of the major version that made it.
 * @type {import('../types.js').JudgeVersion}
 */
export const judgeVersion = (engine, version, folder, major) => {
  if (version === null) return { ok: false, reason: `the program in ${folder} does not tell its version` };
  if (!isAtLeast(version, engine.minimum))
    return { ok: false, reason: `${version} in ${folder} is older than ${engine.minimum}` };
  if (typeof major === 'number' && Number(version.split('.')[0]) !== major)
    return {
      ok: false,
      reason: `${version} in ${folder} cannot open this home's data, which ${engine.name} ${major} made`,
    };
  return { ok: true, version, folder };
};

/**
 * Runs the programs in a folder to read their version.
 * @type {import('../types.js').ProbeEngine}
 */
export const probeFolder = async (engine, folder, major) => {
  const missing = engine.binaries.find((program) => !isExecutable(join(folder, program)));
  if (missing !== undefined) return { ok: false, reason: `no executable ${missing} in ${folder}` };
  const program = join(folder, engine.binaries[0] ?? '');
  try {
    const output = await runCommand(program, ['--version'], { timeoutMs: PROBE_MS });
    return judgeVersion(engine, engine.parseVersion(output), folder, major);
  } catch (error) {
    return { ok: false, reason: `${program} does not run here: ${error.message.split('\n')[0]}` };
  }
};
