import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import type { AntiphonConfig } from '@antiphon/config';
import type { RunView } from '@antiphon/contracts/agent';
import { createRequestClient } from '@antiphon/messaging';
import { silentLogger, systemClock, uuidIds } from '@antiphon/observability';
import type { AgentRuntimeOptions } from '../agent-runtime.js';
import { CancelRun } from '../runs/cancel-run.handler.js';
import { RunQueries } from '../runs/run-queries.handler.js';
import { createRunServices } from '../runs/run-streams.js';
import { RunWorker } from '../runs/run-worker.js';
import type { RunWorkerOptions } from '../runs/run-worker.js';
import { StartRun } from '../runs/start-run.handler.js';
import { TurnEndWatcher } from '../runs/turn-ends.js';
import { Workflows } from '../runs/workflows.handler.js';
import { WORKSPACE, createAgentWorld, testConfig, until } from './agent-world.js';
import type { AgentWorld, TestProcess, WorldDatabase } from './agent-world.js';

/** An agent process with its Temporal worker. */
export interface RunsProcess extends TestProcess {
  readonly worker: RunWorker;
  readonly startRun: StartRun;
  readonly cancelRun: CancelRun;
  readonly workflows: Workflows;
  readonly queries: RunQueries;
  /** Stops as SIGTERM does: the worker first, then the turns. */
  stop(): Promise<void>;
}

export interface RunsWorld {
  readonly agents: AgentWorld;
  readonly temporal: Client;
  readonly taskQueue: string;
  process(
    options?: Partial<RunWorkerOptions> & { readonly config?: AntiphonConfig },
    runtime?: Pick<Partial<AgentRuntimeOptions>, 'times'>,
  ): RunsProcess;
  /** Starts a definition in that process. Returns the run's id. */
  start(process: RunsProcess, source: string, inputs?: Record<string, string>): Promise<string>;
  view(process: RunsProcess, runId: string): Promise<RunView>;
  /** Waits for the end of a run. */
  ended(process: RunsProcess, runId: string): Promise<RunView>;
  close(): Promise<void>;
}

const OPEN: ReadonlySet<string> = new Set(['running', 'cancelling']);
const AGENTS = ['main', 'second'];
const TOOLS = ['echo', 'once', 'quick', 'patient'];

/** Creates an agent world with a Temporal server. Its own task queue separates specs. */
export const createRunsWorld = async (
  database: WorldDatabase,
  natsUrl: string,
  temporalAddress: string,
): Promise<RunsWorld> => {
  const agents = await createAgentWorld(database, natsUrl);
  const connection = await Connection.connect({ address: temporalAddress });
  const temporal = new Client({ connection, namespace: 'antiphon' });
  const taskQueue = `spec-${randomBytes(4).toString('hex')}`;
  const alive = new Set<RunsProcess>();
  const [agent] = testConfig().agents;
  const config = { ...testConfig(), agents: AGENTS.map((id) => ({ ...agent!, id, tools: TOOLS })) };

  const startProcess: RunsWorld['process'] = ({ config: own = config, ...options } = {}, runtime = {}) => {
    const { store, pool, nats } = agents;
    const platform = {
      config: own,
      store,
      pool,
      nats,
      logger: silentLogger,
      clock: systemClock,
      ids: uuidIds,
    };
    const turnEnds = new TurnEndWatcher(platform);
    const process = agents.process({
      ...runtime,
      config: own,
      turnEnded: (sessionId) => turnEnds.notify(sessionId),
    });
    const services = createRunServices(platform);
    const worker = new RunWorker({
      services,
      nats,
      requests: createRequestClient(nats),
      runtime: process.runtime,
      turnEnds,
      temporalAddress,
      taskQueue,
      identity: process.owner,
      ...options,
    });
    worker.start();
    const running: RunsProcess = {
      ...process,
      worker,
      startRun: new StartRun(services, worker),
      cancelRun: new CancelRun(services, process.runtime),
      workflows: new Workflows(services),
      queries: new RunQueries(services),
      stop: async () => {
        alive.delete(running);
        await worker.stop();
        await process.runtime.stop();
        turnEnds.close();
      },
    };
    alive.add(running);
    return running;
  };
  const view = ({ queries }: RunsProcess, runId: string) => queries.getRun({ workspace: WORKSPACE, runId });
  const removeSchedules = async (): Promise<void> => {
    for (const name of [
      'reconcile-runs',
      'sweep-turns',
      'expire-reservations',
      'roll-budget-periods',
      'archive-old-events',
    ])
      await temporal.schedule
        .getHandle(`${taskQueue}/${name}`)
        .delete()
        .catch(() => undefined);
  };

  return {
    agents,
    temporal,
    taskQueue,
    process: startProcess,
    start: async ({ startRun }, source, inputs = {}) =>
      (await startRun.handle({ workspace: WORKSPACE, caller: 'spec', what: { source }, inputs })).runId,
    view,
    ended: (process, runId) =>
      until(async () => {
        const seen = await view(process, runId);
        return !OPEN.has(seen.status) && seen;
      }, 30_000),
    close: async () => {
      await Promise.all([...alive].map((process) => process.stop()));
      await removeSchedules();
      await connection.close();
      await agents.close();
    },
  };
};
