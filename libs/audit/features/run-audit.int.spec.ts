import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { AuditReport } from './audit-report.js';
import {
  admin,
  reader,
  AT,
  event,
  append,
  playTurn,
  tamper,
  eventOf,
  inAuditWorld,
} from './audit-world.spec.js';
import { runAudit } from './run-audit.js';

inAuditWorld();

const audit = (strictQuiesced = false): Promise<AuditReport> => runAudit({ pool: reader, strictQuiesced });
const broken = (report: AuditReport) =>
  report.checks.filter(({ violations }) => violations > 0).map(({ name }) => name);

describe('an unchanged log', () => {
  it('passes with a count for each check, read with the reader’s role', async () => {
    for (let i = 0; i < 3; i++) await playTurn();
    const report = await audit(true);
    expect(broken(report)).toEqual([]);
    expect(report).toMatchObject({ ok: true, events: 21, headPosition: 21, first: null });
    const counts = Object.fromEntries(report.checks.map(({ name, checked }) => [name, checked]));
    expect(counts).toEqual({
      'log-base-is-explained': 1,
      'positions-are-gapless': 21,
      'commands-happen-once': 3,
      'admissions-stay-within-limits': 3,
      'ledger-equals-usage': 3,
      'agents-begin-and-end-in-order': 0,
      'messages-arrive-once': 0,
      'tree-budgets-are-nested': 0,
      'versions-are-contiguous': 21,
      'hash-chains-are-whole': 21,
      'stream-heads-match': 6,
      'signed-roots-match': 0,
      'roots-begin-with-the-log': 0,
      'events-match-contracts': 21,
      'sessions-begin-once': 3,
      'turns-end-once': 3,
      'approvals-precede-calls': 0,
      'tool-calls-have-one-outcome': 0,
      'denials-are-one-event': 0,
      'model-attempts-are-numbered': 3,
      'lease-epochs-grow': 15,
      'messages-are-received-once': 0,
      'turns-are-taken-up': 3,
      'runs-follow-their-graph': 0,
      'reservations-end-once': 3,
      'agents-follow-their-lifecycle': 0,
      'trees-stay-within-limits': 0,
      'inboxes-are-read-forward': 0,
      'tasks-end-once': 0,
      'file-trees-fold-in-order': 0,
      'file-trees-stay-within-quotas': 0,
      'chats-begin-once': 0,
      'chats-have-one-session': 0,
      'plans-equal-their-files': 0,
      'balances-equal-the-log': 4,
      'cited-bytes-are-stored': 0,
    });
  });

  it('passes when it is empty', async () =>
    expect(await audit(true)).toMatchObject({ ok: true, events: 0, headPosition: 0 }));

  it('reports a turn that no process has taken up, by the time of a running system', async () => {
    const { stream } = await playTurn();
    await append(stream, [
      event('TurnRequested', { turnId: randomUUID(), content: 'more', requestedAt: AT }),
    ]);
    expect(broken(await audit())).toEqual([]);
    const now = new Date(Date.now() + 11 * 60_000);
    expect(broken(await runAudit({ pool: reader, now }))).toEqual(['turns-are-taken-up']);
  });

  it('reports running work as open, and as a violation in a strict audit', async () => {
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

describe('a row that a superuser changed', () => {
  it('is reported by the hash chain for every column, until it is restored', async () => {
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

  it('is reported at its position although its hash matches', async () => {
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

  it('is reported when it is deleted from the middle or the end', async () => {
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

  it('is reported when its event stream has no head or a wrong one', async () => {
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

describe('the audit', () => {
  it('reports a balance that is not the sum of its events', async () => {
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

  it('reports a second end of a turn', async () => {
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

  it('reports a turn of two sessions, and a command that is not in the log', async () => {
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

  it('reports an event that breaks its contract', async () => {
    const { stream } = await playTurn();
    await append(stream, [event('TurnRequested', { turnId: 'no uuid' } as never)]);
    const report = await audit();
    expect(broken(report)).toEqual(['events-match-contracts']);
    expect(report.first?.message).toContain('TurnRequested: data.turnId');
  });

  it('reports a projection that differs', async () => {
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

it('reads one snapshot during writes', async () => {
  const writing = Promise.all(Array.from({ length: 4 }, async () => void (await playTurn())));
  const reports = [await audit(), await audit()];
  await writing;
  for (const report of [...reports, await audit(true)]) expect(broken(report)).toEqual([]);
});

it('reads more than one page of streams and events', async () => {
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
