import { randomBytes, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { LiveFrame, liveSubject, sessionStream } from '@antiphon/contracts/agent';
import type { AntiphonConfig, AgentConfig } from '@antiphon/config';
import { createPool } from '@antiphon/database';
import { createLeaseStore, createPostgresEventStore } from '@antiphon/event-store';
import type { EventStore, EventStorePg, LeaseStore, RecordedEvent } from '@antiphon/event-store';
import { connectNats, createLogNotifier, createRequestClient } from '@antiphon/messaging';
import { isAppError } from '@antiphon/kernel';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import { silentLogger, systemClock, uuidIds } from '@antiphon/observability';
import { AgentRuntime } from '../agent-runtime.js';
import type { AgentRuntimeOptions } from '../agent-runtime.js';
import { isolatedLink } from './isolated-link.js';
import { createLife, mortal } from './mortal.js';
import { createResponders } from './responders.js';
import type { Responders } from './responders.js';
import { createTestModel } from './test-model.js';
import type { TestModel } from './test-model.js';

export const WORKSPACE = 'default';
export const TURN_ENDS = /^Turn(Completed|Failed|Cancelled)$/;

const AGENT: AgentConfig = {
  id: 'main',
  name: 'Main',
  role: null,
  provider: 'first',
  model: 'm',
  systemPrompt: 'Be kind.',
  soulPath: null,
  identityDir: null,
  tools: ['echo'],
  capabilities: [],
  maxIterations: 4,
  position: null,
  fallback: null,
  approvals: [],
  toolLimits: [],
};

export const testConfig = (agent: Partial<AgentConfig> = {}): AntiphonConfig => ({
  source: null,
  gateway: { host: '127.0.0.1', port: 0, token: null },
  providers: [],
  agents: [{ ...AGENT, ...agent }],
  plugins: [],
  bindings: [],
  budgets: {
    session: null,
    daily: null,
    monthly: null,
    sessionMicroUsd: null,
    dailyMicroUsd: null,
    monthlyMicroUsd: null,
  },
  prices: [],
  memory: { episodicWindow: 5, contextTokens: 4_000, semanticEnabled: true },
  features: { agentRuntimeV1: true, memoryV1: true, workersV1: true },
  retention: { eventsDays: 30 },
  warnings: [],
});

/** One agent process of a test world; `kill` is as `kill -9`: no goodbye, no lease given back. */
export interface TestProcess {
  readonly runtime: AgentRuntime;
  readonly owner: string;
  readonly model: TestModel;
  kill(): void;
}

export interface AgentWorld {
  readonly store: EventStore & EventStorePg;
  readonly leases: LeaseStore;
  readonly pool: pg.Pool;
  readonly nats: NatsLink;
  readonly responders: Responders;
  readonly model: TestModel;
  /** Codes of the requests of any process that failed, e.g. `MESSAGING.NO_RESPONDERS`. */
  readonly refused: string[];
  /** Frames in the order in which they arrived, from the moment that a session is watched. */
  watch(sessionId: string): LiveFrame[];
  process(options?: Partial<AgentRuntimeOptions>): TestProcess;
  events(sessionId: string): Promise<RecordedEvent[]>;
  types(sessionId: string): Promise<string[]>;
  /** The events of a session once so many of its turns have ended. */
  ended(sessionId: string, turns?: number): Promise<RecordedEvent[]>;
  /** What the supervisor does when it sees a process die. */
  bury(process: TestProcess): Promise<void>;
  /** Ends the processes that are still alive, as SIGTERM does. */
  stopAll(): Promise<void>;
  close(): Promise<void>;
}

/** What `createTestDatabase` of `@antiphon/testing` makes; closing the world drops it. */
export interface WorldDatabase {
  urlFor(role: 'agent'): string;
  drop(): Promise<void>;
}

const noting = (client: RequestClient, refused: string[]): RequestClient => ({
  request: (contract, payload, options) =>
    client.request(contract, payload, options).catch((error: unknown) => {
      if (isAppError(error)) refused.push(error.code);
      throw error;
    }),
});

/**
 * Real PostgreSQL and NATS, one agent process or several, and the other services as the spec wants
 * them.
 */
export const createAgentWorld = async (database: WorldDatabase, natsUrl: string): Promise<AgentWorld> => {
  const pool = createPool({ url: database.urlFor('agent'), applicationName: 'agent-spec', max: 12 });
  const link = await connectNats({ url: natsUrl, service: 'agent', logger: silentLogger });
  const nats = isolatedLink(link, `spec-${randomBytes(4).toString('hex')}`);
  const store = createPostgresEventStore(pool, { onAppended: createLogNotifier(nats) });
  const leases = createLeaseStore(pool);
  const responders = createResponders(nats);
  await responders.startSandbox();
  const model = createTestModel();
  const refused: string[] = [];
  const alive = new Set<AgentRuntime>();
  let count = 0;

  const startProcess: AgentWorld['process'] = (options = {}) => {
    const life = createLife();
    const owner = `agent-spec-${++count}-${randomBytes(3).toString('hex')}`;
    const runtime = new AgentRuntime({
      config: testConfig(),
      store: mortal(life, store),
      leases: mortal(life, leases),
      pool: mortal(life, pool),
      nats: { ...nats, isConnected: () => !life.dead && nats.isConnected() },
      requests: mortal(life, noting(createRequestClient(nats), refused)),
      models: mortal(life, options.models ?? model),
      logger: silentLogger,
      clock: systemClock,
      ids: uuidIds,
      owner,
      random: () => 0,
      times: { leaseMs: 3_000, sweepMs: 50 },
      ...options,
    });
    void runtime.start();
    alive.add(runtime);
    const kill = () => {
      life.kill();
      alive.delete(runtime);
    };
    return { runtime, owner, model, kill };
  };

  const stopAll = async (): Promise<void> => {
    await Promise.all([...alive].map((runtime) => runtime.stop()));
    alive.clear();
  };
  const events = (sessionId: string) => store.readStream(WORKSPACE, sessionStream(sessionId));

  return {
    store,
    leases,
    pool,
    nats,
    responders,
    model,
    refused,
    watch: (sessionId) => {
      const frames: LiveFrame[] = [];
      nats.connection.subscribe(liveSubject(WORKSPACE, sessionId), {
        callback: (_error, message) => void frames.push(LiveFrame.parse(message.json())),
      });
      return frames;
    },
    process: startProcess,
    events,
    types: async (sessionId) => (await events(sessionId)).map(({ type }) => type),
    ended: (sessionId, turns = 1) =>
      until(async () => {
        const all = await events(sessionId);
        return all.filter(({ type }) => TURN_ENDS.test(type)).length >= turns && all;
      }),
    bury: async ({ owner }) => void (await leases.releaseOwner(owner)),
    stopAll,
    close: async () => {
      await stopAll();
      responders.close();
      await store.close();
      await link.drain();
      await pool.end();
      await database.drop();
    },
  };
};

/** A place where a conversation begins, another one each time. */
export const newAddress = (agentId = 'main') => ({
  agentId,
  channel: 'ws',
  account: 'a',
  peer: randomUUID(),
});

/** Submits to a process as its clients do. */
export const submitTo = (
  { runtime }: TestProcess,
  target: Parameters<AgentRuntime['submitTurn']>[0]['target'],
  content = 'hi',
  more: { idempotencyKey?: string } = {},
) => runtime.submitTurn({ workspace: WORKSPACE, target, content, caller: 'spec', ...more });

/** Waits for a fact: asks again until it is there. */
export const until = async <T>(
  look: () => T | Promise<T>,
  timeoutMs = 10_000,
): Promise<Exclude<T, false | null | undefined>> => {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const seen = await look();
    if (seen) return seen as Exclude<T, false | null | undefined>;
    if (performance.now() > deadline) throw new Error(`it did not come about: ${look.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};
