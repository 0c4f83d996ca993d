import { createHash } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@antiphon/observability';
import { startEngineSet } from '@antiphon/stack';
import type { EngineSet } from '@antiphon/stack';
import { lockHolder } from '@antiphon/bootstrap/lock';
import { homeLayout } from '@antiphon/bootstrap/project';
import { projectRoot } from '@antiphon/bootstrap/project';

/** By the engine's name: the variable in which specs find it. One that is set already is used as it is. */
const VARIABLES = {
  postgres: 'ANTIPHON_TEST_DATABASE_URL',
  nats: 'ANTIPHON_TEST_NATS_URL',
  temporal: 'ANTIPHON_TEST_TEMPORAL_ADDRESS',
} as const;
const NAMES = Object.keys(VARIABLES) as (keyof typeof VARIABLES)[];

/** Always the same folder, so that a run finds what a killed one left; another one beside a run that is at work. */
const chooseHome = (): string => {
  const key = createHash('sha256').update(projectRoot).digest('hex').slice(0, 8);
  const usual = join(tmpdir(), `antiphon-test-engines-${key}`);
  return lockHolder(homeLayout(usual).lockFile) === null ? usual : mkdtempSync(`${usual}-`);
};

const publish = (env: NodeJS.ProcessEnv, engines: EngineSet): void => {
  const found = {
    [VARIABLES.postgres]: engines.databaseUrl,
    [VARIABLES.nats]: engines.natsUrl,
    [VARIABLES.temporal]: engines.temporalAddress,
    ANTIPHON_TEST_NATS_SERVER: env['ANTIPHON_TEST_NATS_SERVER'] ?? engines.natsServer,
  };
  for (const [name, value] of Object.entries(found)) if (value !== null) env[name] = value;
};

/** Starts, once for a whole test run, the engines that no variable points at, and lets the variables point at them. */
export const startSharedEngines = async (env: NodeJS.ProcessEnv): Promise<EngineSet | null> => {
  const names = NAMES.filter((name) => !env[VARIABLES[name]]);
  if (names.length === 0) return null;
  const onProgress = (line: string): void => void process.stderr.write(`${line}\n`);
  const engines = await startEngineSet({ home: chooseHome(), names, env, logger: silentLogger, onProgress });
  publish(env, engines);
  return engines;
};
