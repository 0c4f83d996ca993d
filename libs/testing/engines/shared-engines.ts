import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@antiphon/observability';
import { startEngineSet } from '@antiphon/stack';
import type { EngineSet } from '@antiphon/stack';
import { lockHolder } from '@antiphon/bootstrap/lock';
import { homeLayout, projectRoot } from '@antiphon/bootstrap/project';
import { recordHome, startTestRun } from '@antiphon/bootstrap/test-run';

/** Variable in which specs find each engine. An engine whose variable is set is not started. */
const VARIABLES = {
  postgres: 'ANTIPHON_TEST_DATABASE_URL',
  nats: 'ANTIPHON_TEST_NATS_URL',
  temporal: 'ANTIPHON_TEST_TEMPORAL_ADDRESS',
} as const;
const NAMES = Object.keys(VARIABLES) as (keyof typeof VARIABLES)[];

/** A folder in memory, where a flush takes no time. */
const MEMORY = '/dev/shm';
/** Databases, write-ahead logs and homes of specs need about a quarter. */
const LEAST_FREE_BYTES = 6 * 1024 ** 3;

const hasFreeMemory = (): boolean => {
  if (!existsSync(MEMORY)) return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= LEAST_FREE_BYTES;
};

/**
 * Chooses the usual folder, where a run cleans up after a killed one; another one while a run uses
 * it.
 */
const chooseHome = (): string => {
  const key = createHash('sha256').update(projectRoot).digest('hex').slice(0, 8);
  const usual = join(tmpdir(), `antiphon-test-engines-${key}`);
  return lockHolder(homeLayout(usual).lockFile) === null ? usual : mkdtempSync(`${usual}-`);
};

const setVariables = (env: NodeJS.ProcessEnv, engines: EngineSet): void => {
  const found = {
    [VARIABLES.postgres]: engines.databaseUrl,
    [VARIABLES.nats]: engines.natsUrl,
    [VARIABLES.temporal]: engines.temporalAddress,
    ANTIPHON_TEST_NATS_SERVER: env['ANTIPHON_TEST_NATS_SERVER'] ?? engines.natsServer,
  };
  for (const [name, value] of Object.entries(found)) if (value !== null) env[name] = value;
};

const startMissing = async (env: NodeJS.ProcessEnv): Promise<EngineSet | null> => {
  const names = NAMES.filter((name) => !env[VARIABLES[name]]);
  if (names.length === 0) return null;
  const onProgress = (line: string): void => void process.stderr.write(`${line}\n`);
  const home = chooseHome();
  recordHome(home, 'engines');
  const engines = await startEngineSet({ home, names, env, logger: silentLogger, onProgress });
  setVariables(env, engines);
  return engines;
};

/** Shared engines of a run. */
export interface SharedEngines {
  stop(): Promise<void>;
}

/**
 * Starts the engines whose variables are not set, once for a whole test run, and sets the
 * variables. Unless `isDurable`, all temporary folders are in memory if it has room: those of the
 * engines, and the homes of stacks. If the run is interrupted, its guard ends engines and stacks.
 */
export const startSharedEngines = async (
  env: NodeJS.ProcessEnv,
  isDurable: boolean,
): Promise<SharedEngines> => {
  if (!isDurable && hasFreeMemory()) env['TMPDIR'] = MEMORY;
  const finish = startTestRun(env);
  const engines = await startMissing(env);
  return {
    stop: async () => {
      await engines?.stop();
      await finish();
    },
  };
};
