import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import type { RunView } from '@antiphon/contracts/agent';
import { createRequestClient } from '@antiphon/messaging';
import { silentLogger, systemClock, uuidIds } from '@antiphon/observability';
import type { AgentRuntimeOptions } from '../agent-runtime.js';
import { createTurnEndings } from '../runs/turn-ends.js';
import { createRunsEngine } from '../runs/run-worker.js';
import type { RunsEngine, RunsEngineOptions } from '../runs/run-worker.js';
import { WORKSPACE, createAgentWorld, testConfig, until } from './agent-world.js';
import type { AgentWorld, TestProcess, WorldDatabase } from './agent-world.js';

/** One agent process with its Temporal worker. */
export interface RunsProcess extends TestProcess {
  readonly engine: RunsEngine;
  /** As SIGTERM does: the worker first, then the turns. */
  stop(): Promise<void>;
}

export interface RunsWorld {
  readonly agents: AgentWorld;
  readonly temporal: Client;
  readonly taskQueue: string;
  process(
    options?: Partial<RunsEngineOptions>,
    runtime?: Pick<Partial<AgentRuntimeOptions>, 'times'>,
  ): RunsProcess;
  /** Starts a definition in that process; answers the run's id. */
  start(process: RunsProcess, source: string, inputs?: Record<string, string>): Promise<string>;
  view(process: RunsProcess, runId: string): Promise<RunView>;
  /** The run once it has ended. */
  ended(process: RunsProcess, runId: string): Promise<RunView>;
  close(): Promise<void>;
}

const OPEN: ReadonlySet<string> = new Set(['running', 'cancelling']);
const AGENTS = ['main', 'second'];
const TOOLS = ['echo', 'once', 'quick', 'patient'];

/** The agents' world with Temporal's real server: a task queue of its own, so that specs do not take each other's work. */
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

  const startProcess: RunsWorld['process'] = (options = {}, runtime = {}) => {
    const { store, pool, nats } = agents;
    const own = options.config ?? config;
    const house = { config: own, store, pool, nats, logger: silentLogger, clock: systemClock, ids: uuidIds };
    const endings = createTurnEndings(house);
    const process = agents.process({
      ...runtime,
      config: own,
      turnEnded: (sessionId) => endings.note(sessionId),
    });
    const engine = createRunsEngine({
      ...house,
      requests: createRequestClient(nats),
      runtime: process.runtime,
      endings,
      temporalAddress,
      taskQueue,
      identity: process.owner,
      ...options,
    });
    engine.start();
    const running: RunsProcess = {
      ...process,
      engine,
      stop: async () => {
        alive.delete(running);
        await engine.stop();
        await process.runtime.stop();
        endings.close();
      },
    };
    alive.add(running);
    return running;
  };
  const view = ({ engine }: RunsProcess, runId: string) => engine.getRun({ workspace: WORKSPACE, runId });
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
    start: async ({ engine }, source, inputs = {}) =>
      (await engine.startRun({ workspace: WORKSPACE, caller: 'spec', what: { source }, inputs })).runId,
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
