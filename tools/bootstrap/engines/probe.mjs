import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { runCommand } from '../run-command.mjs';
import { isAtLeast } from './engine-specs.mjs';

const PROBE_MS = 15_000;

const isExecutable = (path) => {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false; // not there, or not for us: both mean "look further"
  }
};

/** The folder on PATH that has this program, with links followed, or null. */
export const findOnPath = (program, path = process.env.PATH ?? '') => {
  const found = path
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, program))
    .find(isExecutable);
  return found === undefined ? null : dirname(realpathSync(found));
};

/**
 * Asks the programs in a folder for their version.
 * @returns {Promise<{ok: true, version: string, folder: string} | {ok: false, reason: string}>}
 */
export const probeFolder = async (engine, folder, { major } = {}) => {
  const missing = engine.binaries.find((program) => !isExecutable(join(folder, program)));
  if (missing !== undefined) return { ok: false, reason: `no executable ${missing} in ${folder}` };
  let output;
  try {
    output = await runCommand(join(folder, engine.binaries[0]), ['--version'], { timeoutMs: PROBE_MS });
  } catch (error) {
    return {
      ok: false,
      reason: `${join(folder, engine.binaries[0])} does not run here: ${error.message.split('\n')[0]}`,
    };
  }
  return judgeVersion(engine, engine.parseVersion(output), folder, major);
};

/** Whether a version is new enough and, where data exists already, of the major version that made it. */
export const judgeVersion = (engine, version, folder, major) => {
  if (version === null) return { ok: false, reason: `the program in ${folder} does not tell its version` };
  if (!isAtLeast(version, engine.minimum)) {
    return { ok: false, reason: `${version} in ${folder} is older than ${engine.minimum}` };
  }
  if (major !== undefined && major !== null && Number(version.split('.')[0]) !== major) {
    return {
      ok: false,
      reason: `${version} in ${folder} cannot open this home's data, which ${engine.name} ${major} made`,
    };
  }
  return { ok: true, version, folder };
};
