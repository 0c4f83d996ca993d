import { randomBytes, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { LiveFrame, isTurnEnd, liveSubject, sessionStream } from '@antiphon/contracts/agent';
import type { AntiphonConfig, AgentConfig } from '@antiphon/config';
import { createPool } from '@antiphon/database';
import { createLeaseStore, createPostgresEventStore } from '@antiphon/event-store';
import type { EventStore, EventStorePg, LeaseStore, RecordedEvent } from '@antiphon/event-store';
import { connectNats, createLogNotifier, createRequestClient } from '@antiphon/messaging';
import { CallPermits } from '@antiphon/conversation-features/turns/call-permits';
import { isAppError } from '@antiphon/kernel';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import { silentLogger, systemClock, uuidIds } from '@antiphon/observability';
import { composeProcess } from './agent-process.js';
import type { AgentRuntime, ProcessOptions } from './agent-process.js';
import type { Composition } from './compose-modules.js';
import { createLife, isolatedLink, killable } from './process-isolation.js';
import type { Life } from './process-isolation.js';
import { createResponders } from './responders.js';
import type { Responders } from './responders.js';
import { createTestModel } from './test-model.js';
import type { TestModel } from './test-model.js';

export const WORKSPACE = 'default';

const AGENT: AgentConfig = {
  id: 'main',
  workspace: '*',
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
  thinking: null,
  temperature: null,
  readChats: false,
  budget: null,
};

export const testConfig = (agent: Partial<AgentConfig> = {}): AntiphonConfig => ({
  source: null,
  gateway: {
    host: '127.0.0.1',
    port: 0,
    token: null,
    trustedProxies: [],
    allowedOrigins: [],
    loopbackWithoutToken: true,
    headerTimeoutMs: 10_000,
    bodyTimeoutMs: 30_000,
    heavyWaitMs: 10_000,
    limits: { requestsPerSecond: 0, framesPerSecond: 0, bytesPerSecond: 0, signIns: 0 },
  },
  providers: [],
  agents: [{ ...AGENT, ...agent }],
  plugins: [],
  mcp: { privateHosts: [], servers: [] },
  tools: { privateHosts: [] },
  channels: [],
  bindings: [],
  budgets: {
    session: null,
    daily: null,
    monthly: null,
    sessionMicroUsd: null,
    dailyMicroUsd: null,
    monthlyMicroUsd: null,
    workspaces: [],
  },
  prices: [],
  parameters: [],
  memory: { episodicWindow: 5, contextTokens: 4_000, semanticEnabled: true },
  files: {
    maxFileBytes: 1_000_000,
    maxFiles: 1_000,
    maxBytes: 100_000_000,
    maxVersions: 10_000,
    maxUncitedBytes: 256 * 1024 * 1024,
    executableOnDisk: false,
  },
  features: { agentRuntimeV1: true, memoryV1: true, workersV1: true },
  retention: {
    eventsDays: 30,
    idempotencyDays: 7,
    metricsDays: 30,
    stateChangesDays: 31,
    maxLogBytes: 64 * 1024 ** 3,
  },
  messages: { maxHops: 8 },
  warnings: [],
  settings: [],
});

/** One agent process of a test world. */
export interface TestProcess {
  readonly runtime: AgentRuntime;
  /** Gives the values of the modules' tokens in this process. */
  readonly get: Composition['get'];
  readonly owner: string;
  readonly model: TestModel;
  /** Resolves when the process is ready for turns. */
  readonly started: Promise<void>;
  /** Ends the process as `kill -9` does: without a drain, and without releasing a lease. */
  kill(): void;
}

/** Database of a test world, as `createTestDatabase` of `@antiphon/testing` creates it. */
export interface WorldDatabase {
  urlFor(role: 'agent'): string;
  drop(): Promise<void>;
}

interface WorldParts {
  readonly database: WorldDatabase;
  readonly pool: pg.Pool;
  readonly link: NatsLink;
  readonly nats: NatsLink;
  readonly store: EventStore & EventStorePg;
  readonly leases: LeaseStore;
}

const recordErrors = (client: RequestClient, refused: string[]): RequestClient => ({
  request: (contract, payload, options) =>
    client.request(contract, payload, options).catch((error: unknown) => {
      if (isAppError(error)) refused.push(error.code);
      throw error;
    }),
});

/** One or several agent processes with real PostgreSQL and NATS, and scripted other services. */
export class AgentWorld {
  readonly store: EventStore & EventStorePg;
  readonly leases: LeaseStore;
  readonly pool: pg.Pool;
  readonly nats: NatsLink;
  readonly responders: Responders;
  readonly model = createTestModel();
  /** Error codes of the failed requests of all processes, such as `MESSAGING.NO_RESPONDERS`. */
  readonly refused: string[] = [];
  private readonly alive = new Set<AgentRuntime>();
  private count = 0;

  constructor(private readonly parts: WorldParts) {
    const { store, leases, pool, nats } = parts;
    this.store = store;
    this.leases = leases;
    this.pool = pool;
    this.nats = nats;
    this.responders = createResponders(nats);
    this.responders.permits = (attemptId) =>
      [...this.alive].some(({ get }) => get(CallPermits).use(attemptId));
  }

  /** Collects the frames of a session from now on, in the order of their arrival. */
  watch(sessionId: string): LiveFrame[] {
    const frames: LiveFrame[] = [];
    this.nats.connection.subscribe(liveSubject(WORKSPACE, sessionId), {
      callback: (_error, message) => void frames.push(LiveFrame.parse(message.json())),
    });
    return frames;
  }

  /** Starts an agent process. */
  process({
    life = createLife(),
    ...options
  }: Partial<ProcessOptions> & { readonly life?: Life } = {}): TestProcess {
    const { store, leases, pool, nats, model, refused } = this;
    const owner = `agent-spec-${++this.count}-${randomBytes(3).toString('hex')}`;
    const runtime = composeProcess({
      config: testConfig(),
      store: killable(life, store),
      leases: killable(life, leases),
      pool: killable(life, pool),
      nats: { ...nats, isConnected: () => !life.dead && nats.isConnected() },
      requests: killable(life, recordErrors(createRequestClient(nats), refused)),
      logger: silentLogger,
      clock: systemClock,
      ids: uuidIds,
      owner,
      random: () => 0,
      times: { leaseMs: 3_000, sweepMs: 50 },
      ...options,
      models: killable(life, options.models ?? model),
    });
    const started = runtime.start();
    this.alive.add(runtime);
    const kill = (): void => {
      life.kill();
      runtime.halt();
      this.alive.delete(runtime);
    };
    return { runtime, get: runtime.get, owner, model, kill, started };
  }

  events(sessionId: string): Promise<RecordedEvent[]> {
    return this.store.readStream(WORKSPACE, sessionStream(sessionId));
  }

  async types(sessionId: string): Promise<string[]> {
    return (await this.events(sessionId)).map(({ type }) => type);
  }

  /** Returns the events of a session once that many of its turns have ended. */
  ended(sessionId: string, turns = 1, timeoutMs?: number): Promise<RecordedEvent[]> {
    return until(async () => {
      const all = await this.events(sessionId);
      return all.filter(({ type }) => isTurnEnd(type)).length >= turns && all;
    }, timeoutMs);
  }

  /** Releases the leases of a dead process, as the supervisor does. */
  async handleExit({ owner }: TestProcess): Promise<void> {
    await this.leases.releaseOwner(owner);
  }

  /** Stops the processes that are alive, as SIGTERM does. */
  async stopAll(): Promise<void> {
    await Promise.all([...this.alive].map((runtime) => runtime.stop()));
    this.alive.clear();
  }

  /** Stops the processes and drops the database. */
  async close(): Promise<void> {
    const { link, database } = this.parts;
    await this.stopAll();
    this.responders.close();
    await this.store.close();
    await link.drain();
    await this.pool.end();
    await database.drop();
  }
}

export const createAgentWorld = async (database: WorldDatabase, natsUrl: string): Promise<AgentWorld> => {
  const pool = createPool({ url: database.urlFor('agent'), applicationName: 'agent-spec', max: 12 });
  const link = await connectNats({ url: natsUrl, service: 'agent', logger: silentLogger });
  const nats = isolatedLink(link, `spec-${randomBytes(4).toString('hex')}`);
  const store = createPostgresEventStore(pool, { onAppended: createLogNotifier(nats) });
  const world = new AgentWorld({ database, pool, link, nats, store, leases: createLeaseStore(pool) });
  await world.responders.startSandbox();
  return world;
};

/** Returns a new address without a session. */
export const newAddress = (agentId = 'main') => ({
  agentId,
  channel: 'ws',
  account: 'a',
  peer: randomUUID(),
});

/** Submits a turn to a process, as a client does. */
export const submitTo = (
  { runtime }: TestProcess,
  target: Parameters<AgentRuntime['submitTurn']>[0]['target'],
  content = 'hi',
  more: { idempotencyKey?: string } = {},
) => runtime.submitTurn({ workspace: WORKSPACE, target, content, caller: 'spec', ...more });

/** Polls until `read` returns a value. */
export const until = async <T>(
  read: () => T | Promise<T>,
  timeoutMs = 10_000,
): Promise<Exclude<T, false | null | undefined>> => {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const seen = await read();
    if (seen) return seen as Exclude<T, false | null | undefined>;
    if (performance.now() > deadline) throw new Error(`not reached in ${timeoutMs} ms: ${read.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};
