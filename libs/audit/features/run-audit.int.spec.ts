import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { createPool, inTransaction } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import type { EventStore, EventStorePg, IdempotencyClaim } from '@antiphon/event-store';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { JsonObject } from '@antiphon/kernel';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { runAudit } from './run-audit.js';
import type { AuditReport } from './audit-report.js';

const AT = '2026-11-21T10:00:00.000Z';
let database: TestDatabase;
let admin: pg.Pool;
let reader: pg.Pool;
let pools: pg.Pool[];
let forMetering: pg.Pool;
let agent: EventStore & { close(): Promise<void> };
let metering: EventStore & EventStorePg;

beforeEach(async () => {
  database = await createTestDatabase();
  admin = createPool({ url: database.url, applicationName: 'spec', max: 2 });
  reader = createPool({ url: database.urlFor('reader'), applicationName: 'spec-audit', max: 1 });
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

const event = <T extends SessionEvent['type']>(type: T, data: Extract<SessionEvent, { type: T }>['data']) =>
  ({ type, schemaVersion: 1, data }) as unknown as SessionEvent;

const append = (streamId: string, events: readonly SessionEvent[], idempotency?: IdempotencyClaim) =>
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

interface Booking {
  readonly sessionId: string;
  readonly turnId: string;
  readonly reservationId: string;
}
const scopesOf = (sessionId: string): string[] => [`session/${sessionId}`, 'day/2026-11-21'];

/** What metering does in one transaction: an event, and the rows that follow from it. */
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

const reserve = ({ sessionId, turnId, reservationId }: Booking) => {
  const keys = scopesOf(sessionId);
  const scopes = keys.map((key, i) => ({
    ...{ kind: i === 0 ? 'session' : 'day', key, limitTokens: i === 0 ? 1_000 : null, limitMicroUsd: null },
  }));
  const bound = { inputBound: 100, outputBound: 50, tokens: 150, microUsd: 0, price: null };
  const call = { sessionId, turnId, attempt: 1, agentId: 'main', sessionKey: 'k', provider: 'p', model: 'm' };
  const data = { ...call, scopes, ...bound, reservedAt: AT, expiresAt: AT };
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

const settle = ({ sessionId, reservationId }: Booking) => {
  const data = { inputTokens: 10, outputTokens: 5, microUsd: 0, estimated: false, settledAt: AT };
  return book(reservationId, 1, 'BudgetSettled', data, [
    ...scopesOf(sessionId).map(
      (
        key,
      ) => `update budget_balances set reserved_tokens = reserved_tokens - 150, settled_tokens = settled_tokens + 15
        where scope_key = '${key}'`,
    ),
    `update budget_reservations set status = 'settled', open_until = null where reservation_id = '${reservationId}'`,
  ]);
};

/** One whole turn of a new session, as the services leave it: accepted by a key, reserved, answered, settled. */
const playTurn = async () => {
  const booking = { sessionId: randomUUID(), turnId: randomUUID(), reservationId: randomUUID() };
  const { sessionId, turnId, reservationId } = booking;
  const call = { turnId, attempt: 1, step: 1, provider: 'p', model: 'm', reservationId };
  const claim = { scope: 'ws/turn.submit', key: randomUUID(), digest: 'd', answer: { sessionId, turnId } };
  await append(
    `session-${sessionId}`,
    [
      event('SessionStarted', { sessionId, sessionKey: 'k', agentId: 'main', startedAt: AT }),
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

const audit = (strictQuiesced = false): Promise<AuditReport> => runAudit({ pool: reader, strictQuiesced });
const broken = (report: AuditReport) =>
  report.checks.filter(({ violations }) => violations > 0).map(({ name }) => name);

/** What only a superuser can do: triggers off, and then anything. */
const tamper = async (sql: string, ...values: unknown[]): Promise<void> => {
  const client = await admin.connect();
  try {
    await client.query("set session_replication_role = 'replica'");
    await client.query(sql, values);
    await client.query('reset session_replication_role');
  } finally {
    client.release();
  }
};

const eventOf = async (stream: string, type: string) => {
  const events = await agent.readStream('default', stream);
  return events.find((one) => one.type === type)!;
};

describe('a log that nobody has touched', () => {
  it('passes, with a count for each check, as the reader’s role', async () => {
    for (let i = 0; i < 3; i++) await playTurn();
    const report = await audit(true);
    expect(broken(report)).toEqual([]);
    expect(report).toMatchObject({ ok: true, events: 21, headPosition: 21, first: null });
    const counts = Object.fromEntries(report.checks.map(({ name, checked }) => [name, checked]));
    expect(counts).toEqual({
      'positions-are-gapless': 21,
      'commands-happen-once': 3,
      'admissions-stay-within-limits': 3,
      'ledger-equals-usage': 3,
      'versions-are-contiguous': 21,
      'hash-chains-are-whole': 21,
      'stream-heads-match': 6,
      'events-match-contracts': 21,
      'sessions-begin-once': 3,
      'turns-end-once': 3,
      'tool-calls-have-one-outcome': 0,
      'model-attempts-are-numbered': 3,
      'lease-epochs-grow': 15,
      'runs-follow-their-graph': 0,
      'reservations-end-once': 3,
      'balances-equal-the-log': 4,
    });
  });

  it('passes when it is empty', async () =>
    expect(await audit(true)).toMatchObject({ ok: true, events: 0, headPosition: 0 }));

  it('tells what is at work as open, and as broken only when told that nothing should be', async () => {
    const { stream } = await playTurn();
    const turnId = randomUUID();
    await append(stream, [event('TurnRequested', { turnId, content: 'more', requestedAt: AT })]);
    const report = await audit();
    expect(report.ok).toBe(true);
    expect(report.checks.find(({ name }) => name === 'turns-end-once')).toMatchObject({
      open: 1,
      violations: 0,
      firstOpen: { streamId: stream, position: 8, message: `turn ${turnId} has not ended` },
    });
    await expect(audit(true)).resolves.toMatchObject({ ok: false, first: { check: 'turns-end-once' } });
  });
});

describe('a row changed by a superuser', () => {
  it('is named by the hash chain, whatever was changed, and no more once it is as it was', async () => {
    await playTurn();
    const { stream } = await playTurn();
    const { position } = await eventOf(stream, 'TurnRequested');
    await tamper(`create table saved as select * from events where position = ${position}`);
    const changes = [
      `data = jsonb_set(data, '{content}', '"something else"')`,
      `type = 'TurnRequestedLater'`,
      `metadata = jsonb_set(metadata, '{epoch}', '2')`,
      'event_id = gen_random_uuid()',
      `hash = sha256('x')`,
    ];
    for (const change of changes) {
      await tamper(`update events set ${change} where position = ${position}`);
      const report = await audit();
      const { rows } = await admin.query<{ event_id: string }>(
        'select event_id from events where position = $1',
        [position],
      );
      expect(report.ok).toBe(false);
      expect(report.checks.find(({ name }) => name === 'hash-chains-are-whole')?.first).toMatchObject({
        position,
        streamId: stream,
        eventId: rows[0]?.event_id,
        message: 'its content does not have its hash',
      });
      await tamper(`delete from events where position = ${position}`);
      await tamper('insert into events select * from saved');
    }
    expect(await audit(true)).toMatchObject({ ok: true });
  });

  it('is found where it stands although its hash was made to fit', async () => {
    const { stream } = await playTurn();
    const { position } = await eventOf(stream, 'TurnRequested');
    await tamper(
      `update events e set data = jsonb_set(data, '{content}', '"else"'), hash = sha256(p.hash || convert_to(concat_ws(chr(10),
        e.stream_id, e.stream_version, e.event_id, e.type, e.schema_version,
        replace(replace(jsonb_set(data, '{content}', '"else"')::text, ': ', ':'), ', ', ','),
        replace(replace(e.metadata::text, ': ', ':'), ', ', ',')), 'UTF8'))
       from (select hash from events where position = $1 - 1) p where e.position = $1`,
      position,
    );
    const report = await audit();
    expect(broken(report)).toContain('hash-chains-are-whole');
    expect(
      report.checks.find(({ name }) => name === 'hash-chains-are-whole')?.first?.position,
    ).toBeGreaterThanOrEqual(position);
  });

  it('is named when it is gone from the middle, or from the end', async () => {
    const { stream } = await playTurn();
    const { position } = await eventOf(stream, 'TurnRequested');
    await tamper('delete from events where position = $1', position);
    const middle = await audit();
    expect(broken(middle)).toEqual(
      expect.arrayContaining(['positions-are-gapless', 'versions-are-contiguous', 'hash-chains-are-whole']),
    );
    expect(middle.first).toMatchObject({ position: position + 1 });
    const last = await playTurn();
    await tamper('delete from events where stream_id = $1', `budget-${last.reservationId}`);
    expect(broken(await audit())).toContain('stream-heads-match');
  });

  it('is named when its event stream has no head, or a head that lies', async () => {
    const { stream } = await playTurn();
    await admin.query('update stream_heads set version = version + 1 where stream_id = $1', [stream]);
    expect(broken(await audit())).toEqual(['stream-heads-match']);
    await admin.query('delete from stream_heads where stream_id = $1', [stream]);
    expect((await audit()).first).toMatchObject({
      check: 'stream-heads-match',
      message: `${stream} has no head`,
    });
  });
});

describe('what the services may not do is named', () => {
  it('a balance that is not the sum of its events', async () => {
    await playTurn();
    await admin.query(
      "update budget_balances set settled_tokens = settled_tokens + 1 where scope_key like 'day/%'",
    );
    const report = await audit();
    expect(broken(report)).toEqual(['balances-equal-the-log']);
    expect(report.first).toMatchObject({
      eventId: null,
      message: expect.stringContaining('settledTokens 16, the log 15'),
    });
    await admin.query("delete from budget_balances where scope_key like 'session/%'");
    expect((await audit()).checks.find(({ name }) => name === 'balances-equal-the-log')).toMatchObject({
      violations: 2,
    });
  });

  it('a second end of a turn', async () => {
    const { stream, turnId } = await playTurn();
    await append(stream, [event('TurnCancelled', { turnId, cancelledAt: AT })]);
    const report = await audit();
    expect(broken(report)).toEqual(['turns-end-once']);
    expect(report.first).toMatchObject({
      check: 'turns-end-once',
      streamId: stream,
      message: `turn ${turnId} ended twice`,
    });
  });

  it('a turn that was accepted in two sessions, and a command that is not in the log', async () => {
    const first = await playTurn();
    const second = await playTurn();
    await append(second.stream, [
      event('TurnRequested', { turnId: first.turnId, content: 'x', requestedAt: AT }),
    ]);
    await admin.query(
      `update idempotency set answer = jsonb_set(answer, '{turnId}', '"other"') where answer->>'turnId' = $1`,
      [second.turnId],
    );
    const commands = (await audit()).checks.find(({ name }) => name === 'commands-happen-once');
    expect(commands).toMatchObject({ checked: 2, violations: 2 });
  });

  it('an event that breaks its contract', async () => {
    const { stream } = await playTurn();
    await append(stream, [event('TurnRequested', { turnId: 'no uuid' } as never)]);
    const report = await audit();
    expect(broken(report)).toEqual(['events-match-contracts']);
    expect(report.first?.message).toContain('TurnRequested: data.turnId');
  });

  it('a projection that differs', async () => {
    const projections = [
      { name: 'recall', compare: () => Promise.resolve({ rows: 3, differences: ['row 2 differs'] }) },
    ];
    const report = await runAudit({ pool: reader, projections });
    expect(report).toMatchObject({
      ok: false,
      first: { check: 'projection-equals-the-log:recall', message: 'row 2 differs' },
    });
  });
});

it('reads one snapshot while others write', async () => {
  const writing = Promise.all(Array.from({ length: 4 }, async () => void (await playTurn())));
  const reports = [await audit(), await audit()];
  await writing;
  for (const report of [...reports, await audit(true)]) expect(broken(report)).toEqual([]);
});

it('reads more than a page of streams and events', async () => {
  const { stream } = await playTurn();
  for (let batch = 0; batch < 3; batch++)
    await append(
      stream,
      Array.from({ length: 900 }, () =>
        event('TurnRequested', { turnId: randomUUID(), content: 'x', requestedAt: AT }),
      ),
    );
  const report = await audit();
  expect(broken(report)).toEqual([]);
  expect(report.events).toBe(2_707);
});
