import { ENGINES } from './engine-specs.mjs';
import { resolveEngine } from './resolve-engine.mjs';

export const ENGINE_NAMES = Object.keys(ENGINES);

/** Engines that somebody else runs (their address is set) are not needed here. */
export const neededEngines = (env) => ENGINE_NAMES.filter((name) => !env[ENGINES[name].addressVariable]);

/**
 * Finds or fetches the programs of some engines, side by side, each as a step of `progress`.
 * @param {readonly string[]} names of `postgres`, `nats`, `temporal`
 * @returns {Promise<Partial<Record<string, {version: string, folder: string, source: string}>>>} by name
 */
export const ensureEngines = async (names, context, progress) => {
  const found = await Promise.all(
    names.map(async (name) => [
      name,
      await progress.step(`${ENGINES[name].name}: finding or fetching it`, (onProgress) =>
        resolveEngine(ENGINES[name], {
          ...context,
          major: name === 'postgres' ? context.postgresMajor : null,
          onProgress,
        }),
      ),
    ]),
  );
  return Object.fromEntries(found);
};
