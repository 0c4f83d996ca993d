import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { acquireLock } from '@antiphon/bootstrap/lock';
import type { Lock } from '@antiphon/bootstrap/types';
import { ensureEngines } from '@antiphon/bootstrap/engines/resolve-engine';
import type { EngineName, ResolvedEngine } from '@antiphon/bootstrap/types';
import { cacheFolder, projectRoot } from '@antiphon/bootstrap/project';
import { createProgress } from '@antiphon/bootstrap/progress';
import { endOrphans } from '@antiphon/bootstrap/stop-stack';
import type { Logger } from '@antiphon/observability';
import type { EngineContext, ManagedEngine } from './engines/engine.js';
import { natsEngine } from './engines/nats.js';
import { DATABASE_OWNER } from './engines/postgres-data.js';
import { localDatabaseUrl, postgresEngine } from './engines/postgres.js';
import { temporalEngine } from './engines/temporal.js';
import { ensureCredentials } from './home/credentials.js';
import { createPorts } from './home/ports.js';
import { prepareHome } from './home/prepare-home.js';
import { createChildrenRecord } from './process/children-record.js';
import { superviseProcess } from './process/supervised-process.js';
import type { SupervisedProcess } from './process/supervised-process.js';

export interface EngineSetOptions {
  /** A folder of their own, removed by `stop`; what a killed run left running there is ended first. */
  readonly home: string;
  readonly names: readonly EngineName[];
  readonly env: NodeJS.ProcessEnv;
  readonly logger: Logger;
  readonly onProgress: (line: string) => void;
}

/** Engines without services, for tests: any free ports, and a NATS that asks nobody for a password. */
export interface EngineSet {
  /** As the superuser, database `postgres`. */
  readonly databaseUrl: string | null;
  readonly natsUrl: string | null;
  readonly temporalAddress: string | null;
  /** Path of nats-server, for a spec that runs one of its own. */
  readonly natsServer: string | null;
  stop(): Promise<void>;
}

const ENGINES: Readonly<
  Record<EngineName, (context: EngineContext, program: ResolvedEngine) => ManagedEngine>
> = {
  postgres: postgresEngine,
  nats: (context, program) => natsEngine(context, program, { anonymous: true }),
  temporal: temporalEngine,
};

interface Running {
  readonly engine: ManagedEngine;
  readonly process: SupervisedProcess;
}

const openHome = async ({ home, logger, onProgress }: EngineSetOptions) => {
  const paths = prepareHome(home);
  const lock = await acquireLock(paths.lockFile);
  await endOrphans(home, onProgress);
  const ports = createPorts({ paths, note: onProgress });
  const credentials = ensureCredentials(paths);
  const context = { paths, credentials, ports, logger, usualPorts: false, adopt: lock.adopt };
  return { lock, context };
};

const mountAll = async (
  { names, env, logger, onProgress }: EngineSetOptions,
  context: EngineContext,
  lock: Lock,
): Promise<{ running: Map<EngineName, Running>; programs: Partial<Record<EngineName, ResolvedEngine>> }> => {
  const where = { cache: cacheFolder(env), env, root: projectRoot, postgresMajor: null };
  const programs = await ensureEngines(names, where, createProgress(onProgress));
  const children = createChildrenRecord(context.paths, lock.isHeld);
  const hooks = { logger, children, changed: () => undefined, note: onProgress };
  const running = new Map<EngineName, Running>();
  for (const [name, program] of Object.entries(programs) as [EngineName, ResolvedEngine][]) {
    const engine = ENGINES[name](context, program);
    running.set(name, { engine, process: superviseProcess(engine.spec, hooks) });
  }
  return { running, programs };
};

const databaseUrl = (running: Running | undefined, { credentials }: EngineContext): string | null => {
  const port = running?.process.status().port ?? null;
  return port === null ? null : localDatabaseUrl(port, DATABASE_OWNER, credentials.databaseOwner, 'postgres');
};

/** Finds (or fetches) and starts some engines; resolves when all of them are ready. */
export const startEngineSet = async (options: EngineSetOptions): Promise<EngineSet> => {
  const { lock, context } = await openHome(options);
  const { running, programs } = await mountAll(options, context, lock);
  const processes = [...running.values()].map(({ process }) => process);
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
  const nats = running.get('nats')?.engine.address();
  return {
    databaseUrl: databaseUrl(running.get('postgres'), context),
    natsUrl: nats === undefined ? null : `nats://${nats}`,
    temporalAddress: running.get('temporal')?.engine.address() ?? null,
    natsServer: programs.nats === undefined ? null : join(programs.nats.folder, 'nats-server'),
    stop,
  };
};
