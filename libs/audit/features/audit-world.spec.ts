// Helpers for the specs of this folder; it contains no test itself.
import { afterEach, beforeEach, expect } from '@jest/globals';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { ALL_WORKSPACES, createPool, inTransaction } from '@antiphon/database';
import {
  canonicalJson,
  createPostgresEventStore,
  genesisHash,
  growTree,
  hashEvent,
  hashRecord,
  LogTree,
  readLogState,
  signContent,
} from '@antiphon/event-store';
import type {
  EventStore,
  EventStorePg,
  IdempotencyClaim,
  SignedTreeRoot,
  TreeRoot,
} from '@antiphon/event-store';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { JsonObject } from '@antiphon/kernel';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';

export const AT = '2026-11-21T10:00:00.000Z';
let database: TestDatabase;
export let admin: pg.Pool;
export let reader: pg.Pool;
let pools: pg.Pool[];
let forMetering: pg.Pool;
export let agent: EventStore & { close(): Promise<void> };
let metering: EventStore & EventStorePg;

/** Creates a database for each test of the file, with the services' roles. */
export const inAuditWorld = (): void => {
  beforeEach(async () => {
    database = await createTestDatabase();
    admin = createPool({ url: database.url, applicationName: 'spec', max: 2 });
    reader = createPool({
      ...{ url: database.urlFor('reader'), applicationName: 'spec-audit' },
      ...{ max: 1, workspace: ALL_WORKSPACES },
    });
    const forAgent = createPool({ url: database.urlFor('agent'), applicationName: 'spec-agent', max: 2 });
    forMetering = createPool({ url: database.urlFor('metering'), applicationName: 'spec-metering', max: 2 });
    pools = [admin, reader, forAgent, forMetering];
    agent = createPostgresEventStore(forAgent);
    metering = createPostgresEventStore(forMetering);
  });
  afterEach(async () => {
    await Promise.all([agent.close(), metering.close()]);
    await Promise.all(pools.map((pool) => pool.end()));
    await database.drop();
  });
};

export const event = <T extends SessionEvent['type']>(
  type: T,
  data: Extract<SessionEvent, { type: T }>['data'],
) => ({ type, schemaVersion: 1, data }) as unknown as SessionEvent;

export const append = (streamId: string, events: readonly SessionEvent[], idempotency?: IdempotencyClaim) =>
  agent.append({
    workspace: 'default',
    streams: [
      {
        streamId,
        expectedVersion: 'any',
        events: events.map(({ type, schemaVersion, data }) => ({
          eventId: randomUUID(),
          type,
          schemaVersion,
          data: data as unknown as JsonObject,
          metadata: { correlationId: 'spec', service: 'agent', epoch: 1 },
        })),
      },
    ],
    ...(idempotency ? { idempotency } : {}),
  });

/** Limits of an agent's calls, in tokens: its own and those of its ancestors. */
export type AgentLimits = Readonly<Record<string, number>>;

interface Booking {
  readonly agentId: string;
  readonly agentLimits: AgentLimits;
  readonly sessionId: string;
  readonly turnId: string;
  readonly reservationId: string;
}
const scopesOf = ({ sessionId, agentLimits }: Booking): string[] => [
  `session/${sessionId}`,
  'day/2026-11-21',
  ...Object.keys(agentLimits).map((id) => `agent/${id}`),
];

/** Appends an event and writes its rows in one transaction, as metering does. */
const book = (
  reservationId: string,
  expectedVersion: number,
  type: string,
  data: JsonObject,
  rows: string[],
) =>
  inTransaction(forMetering, async (client) => {
    for (const sql of rows) await client.query(sql);
    const metadata = { correlationId: 'spec', service: 'metering' };
    const events = [
      { eventId: randomUUID(), type, schemaVersion: 1, data: { reservationId, ...data }, metadata },
    ];
    await metering.appendWithin(client, [
      { workspace: 'default', streams: [{ streamId: `budget-${reservationId}`, expectedVersion, events }] },
    ]);
  });

const reserve = (booking: Booking) => {
  const { agentId, agentLimits, sessionId, turnId, reservationId } = booking;
  const keys = scopesOf(booking);
  const scopes = keys.map((key) => {
    const [kind = '', id = ''] = key.split('/');
    const limits: AgentLimits = { [sessionId]: 1_000, ...agentLimits };
    return { kind, key, limitTokens: limits[id] ?? null, limitMicroUsd: null };
  });
  const bound = { inputBound: 100, outputBound: 50, tokens: 150, microUsd: 0, price: null };
  const call = { sessionId, turnId, attempt: 1, agentId, sessionKey: 'k', provider: 'p', model: 'm' };
  const chain = [agentId, ...Object.keys(agentLimits).filter((id) => id !== agentId)];
  const data = {
    ...call,
    ...(chain.length > 1 ? { agents: chain } : {}),
    scopes,
    ...bound,
    reservedAt: AT,
    expiresAt: AT,
  };
  return book(reservationId, 0, 'BudgetReserved', data, [
    ...keys.map(
      (
        key,
      ) => `insert into budget_balances as b (workspace, scope_key, reserved_tokens) values ('default', '${key}', 150)
        on conflict (workspace, scope_key) do update set reserved_tokens = b.reserved_tokens + 150`,
    ),
    `insert into budget_reservations values ('default', '${reservationId}', '${sessionId}', 1, array['${keys.join("','")}'],
      'reserved', 1, '{"tokens": 150, "microUsd": 0}', 0, 0, false, '${AT}')`,
  ]);
};

const settle = (booking: Booking) => {
  const { reservationId } = booking;
  const data = { inputTokens: 10, outputTokens: 5, microUsd: 0, estimated: false, settledAt: AT };
  return book(reservationId, 1, 'BudgetSettled', data, [
    ...scopesOf(booking).map(
      (
        key,
      ) => `update budget_balances set reserved_tokens = reserved_tokens - 150, settled_tokens = settled_tokens + 15
        where scope_key = '${key}'`,
    ),
    `update budget_reservations set status = 'settled', open_until = null where reservation_id = '${reservationId}'`,
  ]);
};

/** Appends a complete turn of a new session: accepted with a key, reserved, completed, settled. */
export const playTurn = async (agentId = 'main', agentLimits: AgentLimits = {}) => {
  const ids = { sessionId: randomUUID(), turnId: randomUUID(), reservationId: randomUUID() };
  const booking = { ...ids, agentId, agentLimits };
  const { sessionId, turnId, reservationId } = booking;
  const call = { turnId, attempt: 1, step: 1, provider: 'p', model: 'm', reservationId };
  const claim = { scope: 'ws/turn.submit', key: randomUUID(), digest: 'd', response: { sessionId, turnId } };
  await append(
    `session-${sessionId}`,
    [
      event('SessionStarted', { sessionId, sessionKey: 'k', agentId, startedAt: AT }),
      event('TurnRequested', { turnId, content: 'hello', requestedAt: AT }),
      event('ModelCallStarted', { ...call, tryNumber: 1, startedAt: AT }),
    ],
    claim,
  );
  await reserve(booking);
  const usage = { inputTokens: 10, outputTokens: 5, estimated: false };
  await append(`session-${sessionId}`, [
    event('ModelCallCompleted', {
      ...call,
      ...{ text: 'hi', thought: '', frames: [{ kind: 'text', length: 2 }], toolCalls: [] },
      ...{ finishReason: 'stop', usage, costMicroUsd: null, completedAt: AT },
    }),
    event('TurnCompleted', { turnId, completedAt: AT }),
  ]);
  await settle(booking);
  return { ...booking, stream: `session-${sessionId}` };
};

/** Appends to streams in one transaction, in this order. Returns the last position. */
export const appendFacts = async (
  ...streams: readonly (readonly [streamId: string, ...events: readonly (readonly [string, JsonObject])[]])[]
): Promise<number> => {
  const owner = streams.some(([streamId]) => streamId.startsWith('budget-')) ? metering : agent;
  const metadata = { correlationId: 'spec', service: 'agent' };
  const { lastPosition } = await owner.append({
    workspace: 'default',
    streams: streams.map(([streamId, ...events]) => ({
      streamId,
      expectedVersion: 'any',
      events: events.map(([type, data]) => ({
        ...{ eventId: randomUUID(), type, schemaVersion: 1, data, metadata },
      })),
    })),
  });
  return lastPosition;
};

/** Runs SQL as a superuser with disabled triggers. */
export const tamper = async (sql: string, ...values: unknown[]): Promise<void> => {
  const client = await admin.connect();
  try {
    await client.query("set session_replication_role = 'replica'");
    await client.query(sql, values);
    await client.query('reset session_replication_role');
  } finally {
    client.release();
  }
};

export const eventOf = async (stream: string, type: string) => {
  const events = await agent.readStream('default', stream);
  return events.find((one) => one.type === type)!;
};

export const { privateKey, publicKey } = generateKeyPairSync('ed25519');

/**
 * Signs the log as it is, after the record before; `changes` replace fields of the record. The
 * first record is an adoption, because it covers a log in use.
 */
export const signLog = async (
  before: SignedTreeRoot | null = null,
  changes: Partial<TreeRoot> = {},
): Promise<SignedTreeRoot> => {
  const state = await readLogState(reader);
  const tree = new LogTree();
  expect(await growTree(reader, tree, state.position)).toBeNull();
  const first: Partial<TreeRoot> = before
    ? {}
    : { kind: 'adoption', actor: 'spec@host', reason: 'first record of a spec' };
  const root: TreeRoot = {
    ...tree.save(),
    ...{ format: 2, kind: 'root', number: (before?.number ?? 0) + 1, epoch: state.epoch, root: tree.hash() },
    ...{ previous: before && hashRecord(before), at: AT, continues: null, reason: null },
  };
  return signContent({ ...root, ...first, ...changes }, privateKey);
};

/** Changes an event and recomputes the hashes of its stream and its head, as a patient owner can. */
export const rewrite = async (stream: string, version: number, change: string): Promise<void> => {
  await tamper(`update events set ${change} where stream_id = $1 and stream_version = $2`, stream, version);
  const { rows } = await admin.query<Record<string, unknown>>(
    `select * from events where stream_id = $1 order by stream_version`,
    [stream],
  );
  let hash = genesisHash('default');
  for (const row of rows) {
    const fields = {
      streamId: stream,
      streamVersion: Number(row['stream_version']),
      eventId: String(row['event_id']),
      type: String(row['type']),
      schemaVersion: Number(row['schema_version']),
      data: canonicalJson(row['data'] as JsonObject),
      metadata: canonicalJson(row['metadata'] as JsonObject),
    };
    hash = hashEvent(hash, fields);
    await tamper(`update events set hash = $1 where position = $2`, hash, row['position']);
  }
  await tamper('update stream_heads set hash = $1 where stream_id = $2', hash, stream);
};
