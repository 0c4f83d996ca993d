import { join } from 'node:path';
import { runCommand } from '@antiphon/bootstrap/processes';
import type { ResolvedEngine } from '@antiphon/bootstrap/types';
import { temporalServer, toClientOptions } from '@antiphon/temporal/server';
import type { TemporalServer } from '@antiphon/temporal/server';
import type { Connection } from '@temporalio/client';
import { connectOnce, StickyPort } from '../home/ports.js';
import { IDLE_START_MS } from '../process/idle-process.js';
import { SupervisedProcess } from '../process/supervised-process.js';
import type { Incarnation } from '../process/supervised-process.js';
import { checkExternal, externalEntry, managedEntry, retryUntilReady } from './engine.js';
import type { EngineContext, EngineOptions, EngineProcess, EngineSource, StackEngine } from './engine.js';

export const TEMPORAL_NAMESPACE = 'antiphon';
export const SEARCH_ATTRIBUTES = ['AntiphonWorkspace', 'AntiphonAgent', 'AntiphonSession'] as const;

const USUAL_PORT = 17233;
const USUAL_UI_PORT = 18233;
const PROBE_MS = 5_000;
const DEADLINE_MS = 2_000;
const RETENTION_S = 3 * 24 * 3600;
/** Temporal's number of the search attribute type Keyword. */
const KEYWORD = 2;
const GRPC = { notFound: 5, alreadyExists: 6 } as const;

/** Returns the arguments of Temporal's server. It does not ask its vendor for newer versions. */
export const temporalArguments = (port: number, uiPort: number, database: string): string[] => [
  'server',
  'start-dev',
  ...['--ip', '127.0.0.1', '--port', String(port), '--ui-port', String(uiPort)],
  ...['--namespace', TEMPORAL_NAMESPACE, '--db-filename', database, '--log-level', 'warn'],
  ...['--sqlite-pragma', 'journal_mode=wal', '--sqlite-pragma', 'synchronous=normal'],
  ...['--dynamic-config-value', 'system.enableActivityEagerExecution=true'],
  ...['--dynamic-config-value', 'frontend.enableServerVersionCheck=false'],
  ...SEARCH_ATTRIBUTES.flatMap((name) => ['--search-attribute', `${name}=Keyword`]),
];

/**
 * Describes the namespace with Temporal's CLI: the client library would cost the supervisor 60 MB.
 */
/** Environment of Temporal's programs: they need a home of their own, also where the user has none. */
const environmentOf = (folder: string): NodeJS.ProcessEnv => ({ PATH: process.env['PATH'], HOME: folder });

const describeNamespace = async (program: string, address: string, folder: string): Promise<void> => {
  const args = ['operator', 'namespace', 'describe', '--namespace', TEMPORAL_NAMESPACE];
  const options = { timeoutMs: PROBE_MS, env: environmentOf(folder) };
  await runCommand(program, [...args, '--address', address], options);
};

/** Returns how Temporal's server and web UI are run, with a database in the home. */
export const temporalProcess = (
  { paths, ports, usualPorts }: EngineContext,
  program: ResolvedEngine,
): EngineProcess & { uiUrl(): string } => {
  const port = new StickyPort({ ports, name: 'Temporal', preferred: usualPorts ? USUAL_PORT : 0 });
  const uiPort = new StickyPort({ ports, name: 'Temporal UI', preferred: usualPorts ? USUAL_UI_PORT : 0 });
  const address = (): string => `127.0.0.1:${port.current()}`;
  const command = join(program.folder, 'temporal');
  const prepare = async (): Promise<Incarnation> => ({
    launch: {
      command,
      args: temporalArguments(
        await port.ensure(),
        await uiPort.ensure(),
        join(paths.temporal, 'temporal.db'),
      ),
      env: environmentOf(paths.temporal),
      cwd: paths.temporal,
      home: paths.home,
      logFile: join(paths.logs, 'temporal.log'),
    },
  });
  return {
    version: program.version,
    address,
    uiUrl: () => `http://127.0.0.1:${uiPort.current()}`,
    spec: {
      name: 'Temporal',
      rank: 2,
      stopSignal: 'SIGTERM',
      graceMs: 10_000,
      readyTimeoutMs: 60_000,
      idleTimeoutMs: IDLE_START_MS,
      attempts: 3,
      prepare,
      whenReady: async (_child, signal) => {
        // Describing starts a process each time, so wait for the port first.
        await retryUntilReady(signal, () => connectOnce(port.current()));
        await retryUntilReady(signal, () => describeNamespace(command, address(), paths.temporal));
        port.settle();
        uiPort.settle();
        return port.current();
      },
    },
  };
};

const withConnection = async <T>(
  server: TemporalServer,
  work: (connection: Connection) => Promise<T>,
): Promise<T> => {
  // Imported here: it takes 20 MB, and most supervisors manage their own server.
  const client = await import('@temporalio/client');
  const connection = await client.Connection.connect({
    ...toClientOptions(server),
    connectTimeout: DEADLINE_MS,
  });
  try {
    return await connection.withDeadline(Date.now() + DEADLINE_MS, () => work(connection));
  } finally {
    await connection.close();
  }
};

const ignoreCode = (code: number) => (error: unknown) => {
  if ((error as { code?: number }).code !== code) throw error;
};

const hasNamespace = ({ workflowService }: Connection): Promise<boolean> =>
  workflowService.describeNamespace({ namespace: TEMPORAL_NAMESPACE }).then(
    () => true,
    (error: unknown) => {
      ignoreCode(GRPC.notFound)(error);
      return false;
    },
  );

/** Creates the namespace and its search attributes on an external server where they are missing. */
export const ensureNamespace = (server: TemporalServer): Promise<void> =>
  withConnection(server, async (connection) => {
    const namespace = TEMPORAL_NAMESPACE;
    if (!(await hasNamespace(connection))) {
      const workflowExecutionRetentionPeriod = { seconds: RETENTION_S as never };
      await connection.workflowService
        .registerNamespace({ namespace, workflowExecutionRetentionPeriod })
        .catch(ignoreCode(GRPC.alreadyExists));
    }
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
    const missing = SEARCH_ATTRIBUTES.filter((name) => customAttributes[name] === undefined);
    if (missing.length === 0) return;
    const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD]));
    await connection.operatorService
      .addSearchAttributes({ namespace, searchAttributes })
      .catch(ignoreCode(GRPC.alreadyExists));
  });

export interface TemporalEngine extends StackEngine {
  /** Returns `host:port` of its gRPC. */
  address(): string;
  /** Returns null for an external server. */
  uiUrl(): string | null;
}

const manageTemporal = (
  { context, hooks, progress }: EngineOptions,
  program: ResolvedEngine,
): TemporalEngine => {
  const { spec, version, address, uiUrl } = temporalProcess(context, program);
  const process = new SupervisedProcess(spec, hooks);
  return {
    process,
    address,
    uiUrl: () => (process.status().port === null ? null : uiUrl()),
    entry: () => managedEntry(process, version, ''),
    start: () => progress.step('Temporal: starting it', () => process.start()),
  };
};

/** Creates Temporal with the namespace `antiphon` and its search attributes. */
export const createTemporal = (
  options: EngineOptions,
  { program, external }: EngineSource,
): TemporalEngine =>
  program !== undefined
    ? manageTemporal(options, program)
    : {
        process: null,
        address: () => external,
        uiUrl: () => null,
        entry: () => externalEntry(external),
        start: () =>
          checkExternal(
            'ANTIPHON_TEMPORAL_ADDRESS',
            () => external,
            () => ensureNamespace(temporalServer(external, process.env)),
          ),
      };
