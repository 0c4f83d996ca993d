import { describe, expect, it } from '@jest/globals';
import type { SignedTreeRoot } from '@antiphon/event-store';
import type { AuditReport } from './audit-report.js';
import {
  admin,
  appendFacts,
  inAuditWorld,
  playTurn,
  publicKey,
  reader,
  rewrite,
  signLog,
  tamper,
} from './audit-world.spec.js';
import { runAudit } from './run-audit.js';

inAuditWorld();

const audit = (roots: readonly SignedTreeRoot[] = []): Promise<AuditReport> =>
  runAudit({ pool: reader, trusted: { publicKeys: [publicKey], roots } });
const findCheck = ({ checks }: AuditReport, name: string) => checks.find((check) => check.name === name);

/** Signs the log `times` times, each after another turn. */
const signTurns = async (times: number): Promise<SignedTreeRoot[]> => {
  const roots: SignedTreeRoot[] = [];
  for (let i = 0; i < times; i++) {
    await playTurn();
    roots.push(await signLog(roots.at(-1)));
  }
  return roots;
};
const CHANGE = `data = jsonb_set(data, '{text}', '"no"')`;

describe('a rewritten history', () => {
  it('is found although 64 later roots sign the forged one', async () => {
    const { stream } = await playTurn();
    const honest = await signLog();
    await rewrite(stream, 4, CHANGE);
    const unsigned = await runAudit({ pool: reader });
    expect(unsigned).toMatchObject({ ok: true, signing: { state: 'unsigned' } });
    const roots = [honest];
    for (let i = 0; i < 65; i++) roots.push(await signLog(roots.at(-1)));
    const report = await audit(roots);
    expect(report.ok).toBe(false);
    expect(report.first).toMatchObject({ check: 'signed-roots-match', position: 1 });
    expect(report.first?.message).toContain('an event after position 0, up to position 7, is not the one');
  });

  it('is named by the positions between the last root that matches and the next', async () => {
    const roots = await signTurns(2);
    const { stream } = await playTurn();
    roots.push(await signLog(roots.at(-1)), await signLog(roots.at(-1)));
    await rewrite(stream, 4, CHANGE);
    expect((await audit(roots)).first).toMatchObject({ check: 'signed-roots-match', position: 15 });
  });

  it('is found although the epoch was raised after it', async () => {
    const { stream } = await playTurn();
    const roots = [await signLog()];
    await rewrite(stream, 4, CHANGE);
    await tamper('update log_head set epoch = epoch + 1');
    await tamper('update projection_checkpoints set epoch = epoch + 1');
    expect(await runAudit({ pool: reader })).toMatchObject({ ok: true });
    const report = await audit(roots);
    expect(report.first?.message).toBe(
      'the log is of epoch 2; no signed record says that it continues epoch 1',
    );
    expect(report.ok).toBe(false);
  });

  it('is found by roots of the epoch before a signed restore', async () => {
    const { stream } = await playTurn();
    const first = await signLog();
    await tamper('update log_head set epoch = 2');
    const epoch = await signLog(first, { kind: 'epoch', continues: 1, reason: 'restore' });
    expect(await audit([first, epoch])).toMatchObject({ ok: true, signing: { state: 'signed' } });
    await rewrite(stream, 4, CHANGE);
    expect((await audit([first])).ok).toBe(false);
    expect((await audit([first, epoch])).first).toMatchObject({ check: 'signed-roots-match', position: 1 });
  });

  it('is found where whole streams were deleted below a raised base', async () => {
    const { stream, reservationId, sessionId } = await playTurn();
    await playTurn();
    const roots = [await signLog()];
    const gone = [stream, `budget-${reservationId}`];
    for (const table of ['events', 'stream_heads'])
      await tamper(`delete from ${table} where stream_id = any ($1)`, gone);
    await tamper('delete from idempotency where last_position <= 7');
    await tamper('delete from budget_balances where scope_key = $1', `session/${sessionId}`);
    await tamper("update budget_balances set settled_tokens = 15 where scope_key like 'day/%'");
    await tamper('delete from budget_reservations where reservation_id = $1', reservationId);
    await tamper('update log_head set base_position = 7');
    const report = await runAudit({ pool: reader });
    expect(report.ok).toBe(false);
    expect(report.first).toMatchObject({
      check: 'log-base-is-explained',
      message: 'the log begins after position 7; its archives end at position 0',
    });
    expect((await audit(roots)).first?.message).toContain(
      'the log has no event at position 1, which the root at',
    );
  });
});

describe('positions and times', () => {
  it('are covered by the roots', async () => {
    await playTurn();
    const roots = [await signLog()];
    await tamper(`update events set recorded_at = recorded_at - interval '1 day' where position = 3`);
    expect(await runAudit({ pool: reader })).toMatchObject({ ok: true });
    expect(findCheck(await audit(roots), 'signed-roots-match')).toMatchObject({ violations: 1 });
  });
});

describe('records of roots', () => {
  it('are found where two have the same number or one does not follow the record before', async () => {
    const [first, second] = (await signTurns(2)) as [SignedTreeRoot, SignedTreeRoot];
    const fork = await signLog(first, { at: '2026-11-21T11:00:00.000Z' });
    expect((await audit([first, second, fork])).first?.message).toBe('two different records have number 2');
    const loose = await signLog(second, { previous: second.root });
    expect((await audit([first, second, loose])).first?.message).toBe(
      'record 3 does not carry the hash of record 2',
    );
  });

  // @shows review1-20
  it('are found damaged, by their line', async () => {
    await playTurn();
    const trusted = {
      publicKeys: [publicKey],
      roots: [await signLog()],
      damaged: ['line 7 of log-roots.jsonl'],
    };
    const report = await runAudit({ pool: reader, trusted });
    expect(report.first?.message).toBe('line 7 of log-roots.jsonl is not a signed root');
  });

  it('of a wrong type do not end the audit', async () => {
    await playTurn();
    const root = await signLog();
    const report = await audit([{ ...root, signature: 7 } as unknown as SignedTreeRoot]);
    expect(findCheck(report, 'signed-roots-match')?.first?.message).toContain(
      'was not signed with a key that is trusted',
    );
  });

  it('in the table are compared too', async () => {
    const { stream } = await playTurn();
    const root = await signLog();
    await admin.query(`insert into log_roots values (1, 'root', $1, $2, $3, now())`, [
      root.position,
      Buffer.from(root.root, 'hex'),
      JSON.stringify(root),
    ]);
    expect(await audit()).toMatchObject({ ok: true, signing: { state: 'signed', position: 7 } });
    await rewrite(stream, 4, CHANGE);
    expect((await audit()).ok).toBe(false);
  });
});

/** Signs the log as a signer does that does not know of earlier roots. */
const signFirst = (): Promise<SignedTreeRoot> =>
  signLog(null, { kind: 'root', actor: undefined, reason: null });
const BEGIN = 'roots-begin-with-the-log';

describe('the begin of the roots', () => {
  it('is broken where the owner rewrote an answer, removed the roots and had the log signed again', async () => {
    const { stream } = await playTurn();
    await rewrite(stream, 4, CHANGE);
    const report = await audit([await signFirst()]);
    expect(report).toMatchObject({ ok: false, first: { check: BEGIN, position: 1 } });
    expect(report.first?.message).toContain('the roots begin at position 7, after the log');
  });

  it('is broken where the first record is missing, such as in a table whose old rows were deleted', async () => {
    const [, later] = (await signTurns(2)) as [SignedTreeRoot, SignedTreeRoot];
    const report = await audit([later]);
    expect(report).toMatchObject({ ok: false, first: { check: BEGIN, position: 14 } });
    expect(report.first?.message).toContain('the first record of the roots is missing');
  });

  it('is broken where no root is left, with the key', async () => {
    await playTurn();
    const report = await audit([]);
    expect(report).toMatchObject({ ok: false, first: { check: BEGIN, position: 1 } });
    expect(report.first?.message).toContain('antiphon roots adopt');
  });

  it('holds where the roots begin with the empty log', async () => {
    const empty = await signFirst();
    await playTurn();
    const report = await audit([empty, await signLog(empty)]);
    expect(report).toMatchObject({ ok: true, signing: { begin: { kind: 'root', position: 0 } } });
  });

  it('holds where the first root covers events of an installation only', async () => {
    await appendFacts(['agent-main', ['AgentReady', { agentId: 'main' }]]);
    const root = await signFirst();
    await playTurn();
    const report = await audit([root, await signLog(root)]);
    expect(findCheck(report, BEGIN)).toMatchObject({ checked: 2, violations: 0 });
    expect(report.signing).toMatchObject({ begin: { kind: 'root', position: 1 } });
  });

  it('is told with the operator and the reason of an adoption, which outlives later roots', async () => {
    const [adoption, later] = (await signTurns(2)) as [SignedTreeRoot, SignedTreeRoot];
    expect(await audit([adoption, later])).toMatchObject({
      ...{ ok: true, signing: { state: 'signed', position: 14 } },
      signing: {
        begin: { kind: 'adoption', position: 7, actor: 'spec@host', reason: 'first record of a spec' },
      },
    });
  });

  it('is broken by an adoption that another key signed', async () => {
    await playTurn();
    const adoption = await signLog();
    const report = await audit([{ ...adoption, reason: 'none of your business' }]);
    expect(report.ok).toBe(false);
    expect(findCheck(report, BEGIN)).toMatchObject({ violations: 1 });
  });

  it('reveals events that were inserted with an earlier time than the root before them', async () => {
    const now = () => new Date().toISOString();
    const empty = await signLog(null, { kind: 'root', actor: undefined, reason: null, at: now() });
    await playTurn();
    await tamper(`update events set recorded_at = recorded_at - interval '1 hour' where position = 3`);
    const report = await audit([empty, await signLog(empty, { at: now() })]);
    expect(report).toMatchObject({ ok: false, first: { check: 'signed-roots-match', position: 3 } });
    expect(report.first?.message).toContain('before record 1 was signed at');
  });
});

describe('the signing state', () => {
  it('is stale where an event that no root covers is old', async () => {
    const roots = await signTurns(1);
    await playTurn();
    expect((await audit(roots)).signing).toMatchObject({ state: 'signed', unsignedEvents: 7 });
    await tamper(`update events set recorded_at = recorded_at - interval '2 hours' where position > 7`);
    expect((await audit(roots)).signing).toMatchObject({ state: 'stale', position: 7, unsignedEvents: 7 });
  });

  // @shows review1-4
  it('is unsigned without a key or a root', async () => {
    const roots = await signTurns(1);
    const report = await runAudit({ pool: reader, trusted: { publicKeys: [], roots } });
    expect(report).toMatchObject({ ok: true, signing: { state: 'unsigned', unsignedEvents: 7 } });
  });
});
