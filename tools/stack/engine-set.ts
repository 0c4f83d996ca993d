import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { ensureEngines } from '@antiphon/bootstrap/engines/resolve-engine';
import { acquireLock } from '@antiphon/bootstrap/lock';
import { createProgress } from '@antiphon/bootstrap/progress';
import { cacheFolder, projectRoot } from '@antiphon/bootstrap/project';
import { endOrphans } from '@antiphon/bootstrap/stop-stack';
import type { EngineName, ResolvedEngine } from '@antiphon/bootstrap/types';
import type { Logger } from '@antiphon/observability';
import type { EngineContext, EngineProcess } from './engines/engine.js';
import { natsProcess } from './engines/nats.js';
import { DATABASE_OWNER } from './engines/postgres-data.js';
import { localDatabaseUrl, postgresProcess } from './engines/postgres.js';
import { temporalProcess } from './engines/temporal.js';
import { ensureCredentials, prepareHome } from './home/home.js';
import { createPorts } from './home/ports.js';
import { createChildrenRecord } from './process/child-process.js';
import { SupervisedProcess } from './process/supervised-process.js';

export interface EngineSetOptions {
  /**
   * Folder of the engines' data. Orphans of a killed run there are ended first; `stop` deletes it.
   */
  readonly home: string;
  readonly names: readonly EngineName[];
  readonly env: NodeJS.ProcessEnv;
  readonly logger: Logger;
  readonly onProgress: (line: string) => void;
}

/** Engines without services, for tests: any free ports, and a NATS without passwords. */
export interface EngineSet {
  /** URL of the superuser, database `postgres`. */
  readonly databaseUrl: string | null;
  readonly natsUrl: string | null;
  readonly temporalAddress: string | null;
  /** Path of nats-server, for a spec that starts its own. */
  readonly natsServer: string | null;
  stop(): Promise<void>;
}

const PROCESSES: Readonly<
  Record<EngineName, (context: EngineContext, program: ResolvedEngine) => EngineProcess>
> = {
  postgres: postgresProcess,
  nats: (context, program) => natsProcess(context, program, { anonymous: true }),
  temporal: temporalProcess,
};

const openHome = async ({ home, logger, onProgress }: EngineSetOptions) => {
  const paths = prepareHome(home);
  const lock = await acquireLock(paths.lockFile);
  await endOrphans(home, onProgress);
  const ports = createPorts({ paths, note: onProgress });
  const credentials = ensureCredentials(paths);
  const { adopt } = lock;
  const context = { paths, credentials, ports, logger, usualPorts: false, adopt, note: onProgress };
  const children = createChildrenRecord(paths, lock.isHeld, logger);
  const hooks = { logger, children, changed: () => undefined, note: onProgress };
  return { lock, context, hooks };
};

/** Finds or fetches some engines and starts them. Resolves when all of them are ready. */
export const startEngineSet = async (options: EngineSetOptions): Promise<EngineSet> => {
  const { names, env, onProgress } = options;
  const { lock, context, hooks } = await openHome(options);
  const search = { cache: cacheFolder(env), env, root: projectRoot, postgresMajor: null };
  const programs = await ensureEngines(names, search, createProgress(onProgress));
  const found = Object.entries(programs) as [EngineName, ResolvedEngine][];
  const engines = new Map(found.map(([name, program]) => [name, PROCESSES[name](context, program)]));
  const processes = [...engines.values()].map(({ spec }) => new SupervisedProcess(spec, hooks));
  const stop = async (): Promise<void> => {
    await Promise.all(processes.map((process) => process.stop()));
    lock.release();
    rmSync(options.home, { recursive: true, force: true });
  };
  try {
    await Promise.all(processes.map((process) => process.start()));
  } catch (error) {
    await stop();
    throw error;
  }
  const { databaseOwner } = context.credentials;
  const port = Number(engines.get('postgres')?.address().split(':')[1] ?? 0);
  const nats = engines.get('nats')?.address();
  return {
    databaseUrl: port === 0 ? null : localDatabaseUrl(port, DATABASE_OWNER, databaseOwner, 'postgres'),
    natsUrl: nats === undefined ? null : `nats://${nats}`,
    temporalAddress: engines.get('temporal')?.address() ?? null,
    natsServer: programs.nats === undefined ? null : join(programs.nats.folder, 'nats-server'),
    stop,
  };
};
