import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import type { AntiphonConfig } from '@antiphon/config';
import type { RunView } from '@antiphon/contracts/agent';
import { createRequestClient } from '@antiphon/messaging';
import { silentLogger, systemClock, uuidIds } from '@antiphon/observability';
import type { AgentRuntimeOptions } from '../agent-runtime.js';
import { CancelRun } from '@antiphon/orchestration-features/runs/cancel-run.handler';
import { RunQueries } from '@antiphon/orchestration-features/runs/run-queries.handler';
import { createRunServices } from '@antiphon/orchestration-features/runs/run-streams';
import { RunWorker } from '@antiphon/orchestration-features/temporal/run-worker';
import type { RunWorkerOptions } from '@antiphon/orchestration-features/temporal/run-worker';
import { StartRun } from '@antiphon/orchestration-features/runs/start-run.handler';
import { TurnEndWatcher } from '@antiphon/conversation-features/sessions/turn-ends';
import { Workflows } from '@antiphon/orchestration-features/runs/workflows.handler';
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

const OPEN: ReadonlySet<string> = new Set(['running', 'cancelling']);
const AGENTS = ['main', 'second'];
const TOOLS = ['echo', 'once', 'quick', 'patient'];

const SCHEDULES = [
  'reconcile-runs',
  'sweep-turns',
  'delete-old-rows',
  'expire-reservations',
  'roll-budget-periods',
  'archive-old-events',
];

const configOf = (): AntiphonConfig => {
  const [agent] = testConfig().agents;
  return { ...testConfig(), agents: AGENTS.map((id) => ({ ...agent!, id, tools: TOOLS })) };
};

/** An agent world with a Temporal server. Its own task queue separates specs. */
export class RunsWorld {
  readonly temporal: Client;
  readonly taskQueue = `spec-${randomBytes(4).toString('hex')}`;
  private readonly alive = new Set<RunsProcess>();

  constructor(
    readonly agents: AgentWorld,
    private readonly connection: Connection,
    private readonly temporalAddress: string,
  ) {
    this.temporal = new Client({ connection, namespace: 'antiphon' });
  }

  /** Starts an agent process with a Temporal worker. */
  process(
    {
      config = configOf(),
      ...options
    }: Partial<RunWorkerOptions> & { readonly config?: AntiphonConfig } = {},
    runtime: Pick<Partial<AgentRuntimeOptions>, 'times'> = {},
  ): RunsProcess {
    const { store, pool, nats } = this.agents;
    const platform = {
      ...{ config, store, pool, nats },
      ...{ logger: silentLogger, clock: systemClock, ids: uuidIds },
    };
    const turnEnds = new TurnEndWatcher(platform);
    const process = this.agents.process({ ...runtime, config, turnEnds });
    const services = createRunServices({ ...platform, past: process.runtime.services.past });
    const worker = new RunWorker({
      services,
      nats,
      requests: createRequestClient(nats),
      runtime: process.runtime,
      turnEnds,
      temporalAddress: this.temporalAddress,
      taskQueue: this.taskQueue,
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
        this.alive.delete(running);
        await worker.stop();
        await process.runtime.stop();
        turnEnds.close();
      },
    };
    this.alive.add(running);
    return running;
  }

  /** Starts a definition in that process. Returns the run's id. */
  async start(
    { startRun }: RunsProcess,
    source: string,
    inputs: Record<string, string> = {},
  ): Promise<string> {
    const request = { workspace: WORKSPACE, caller: 'spec', what: { source }, inputs };
    return (await startRun.handle(request)).runId;
  }

  view({ queries }: RunsProcess, runId: string): Promise<RunView> {
    return queries.getRun({ workspace: WORKSPACE, runId });
  }

  /** Waits for the end of a run. */
  ended(process: RunsProcess, runId: string): Promise<RunView> {
    return until(async () => {
      const seen = await this.view(process, runId);
      return !OPEN.has(seen.status) && seen;
    }, 30_000);
  }

  /** Stops the processes, and deletes the schedules and the database. */
  async close(): Promise<void> {
    await Promise.all([...this.alive].map((process) => process.stop()));
    for (const name of SCHEDULES)
      await this.temporal.schedule
        .getHandle(`${this.taskQueue}/${name}`)
        .delete()
        .catch(() => undefined);
    await this.connection.close();
    await this.agents.close();
  }
}

export const createRunsWorld = async (
  database: WorldDatabase,
  natsUrl: string,
  temporalAddress: string,
): Promise<RunsWorld> => {
  const agents = await createAgentWorld(database, natsUrl);
  const connection = await Connection.connect({ address: temporalAddress });
  return new RunsWorld(agents, connection, temporalAddress);
};
