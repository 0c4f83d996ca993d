import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import type { AntiphonConfig } from '@antiphon/config';
import type { RunView } from '@antiphon/contracts/agent';
import { CancelRun } from '@antiphon/orchestration-features/runs/cancel-run.handler';
import { RunQueries } from '@antiphon/orchestration-features/runs/run-queries.handler';
import { WORKER_SETTINGS } from '@antiphon/orchestration-features/orchestration.tokens';
import { RunWorker, WORKER_DEFAULTS } from '@antiphon/orchestration-features/temporal/run-worker';
import type { WorkerSettings } from '@antiphon/orchestration-features/temporal/run-worker';
import { StartRun } from '@antiphon/orchestration-features/runs/start-run.handler';
import { Workflows } from '@antiphon/orchestration-features/runs/workflows.handler';
import type { ProcessOptions } from './agent-process.js';
import { override } from './compose-modules.js';
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
  'learn-vendor-figures',
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
    { config = configOf(), ...options }: Partial<WorkerSettings> & { readonly config?: AntiphonConfig } = {},
    runtime: Pick<Partial<ProcessOptions>, 'times'> = {},
  ): RunsProcess {
    const settings = { ...WORKER_DEFAULTS, server: this.temporalAddress, taskQueue: this.taskQueue };
    const more = { retention: null, identity: this.taskQueue, ...options };
    const overrides = [override(WORKER_SETTINGS, { ...settings, ...more })];
    const process = this.agents.process({ ...runtime, config, overrides });
    const worker = process.get(RunWorker);
    worker.start();
    const running: RunsProcess = {
      ...process,
      worker,
      startRun: process.get(StartRun),
      cancelRun: process.get(CancelRun),
      workflows: process.get(Workflows),
      queries: process.get(RunQueries),
      stop: async () => {
        this.alive.delete(running);
        await worker.stop();
        await process.runtime.stop();
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
