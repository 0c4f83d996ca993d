import { beforeEach, describe, expect, it } from '@jest/globals';
import { createPublicKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import { readLogRoot, signContent } from '@antiphon/event-store';
import type { SignedLogRoot } from '@antiphon/event-store';
import { parseCheckpoint } from './audit-checkpoint.js';
import type { SignedAuditCheckpoint } from './audit-checkpoint.js';
import type { AuditReport } from './audit-report.js';
import { AT, admin, append, event, inAuditWorld, playTurn, reader, tamper } from './audit-world.spec.js';
import { auditLog, runAudit } from './run-audit.js';

inAuditWorld();

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const signRoot = async (): Promise<SignedLogRoot> => signContent(await readLogRoot(reader, AT), privateKey);
/** Root of the empty log, with which the roots begin. */
let begin: SignedLogRoot;
beforeEach(async () => {
  begin = await signRoot();
});
const audit = (...roots: SignedLogRoot[]): Promise<AuditReport> =>
  runAudit({ pool: reader, trusted: { publicKeys: [publicKey], roots: [begin, ...roots] } });
const broken = ({ checks }: AuditReport) =>
  checks.filter(({ violations }) => violations > 0).map(({ name }) => name);

const auditFrom = (since: SignedAuditCheckpoint | undefined) =>
  auditLog({
    pool: reader,
    trusted: { publicKeys: [publicKey], roots: [begin] },
    ...(since ? { since } : {}),
  });
/** Audits and signs the checkpoint through text, as the command line does. */
const leaveCheckpoint = async (since?: SignedAuditCheckpoint): Promise<SignedAuditCheckpoint> => {
  const { checkpoint } = await auditFrom(since);
  return parseCheckpoint(JSON.stringify(signContent(checkpoint!(AT), privateKey)), publicKey);
};

describe('signed roots', () => {
  it('match a log that has only grown', async () => {
    await playTurn();
    const first = await signRoot();
    const { stream } = await playTurn();
    const second = await signRoot();
    await append(stream, [event('TurnRequested', { turnId: randomUUID(), content: 'x', requestedAt: AT })]);
    const report = await audit(first, second);
    expect(broken(report)).toEqual([]);
    expect(report.checks.find(({ name }) => name === 'signed-roots-match')?.checked).toBe(3);
  });

  it('reveal that the newest events were removed with their heads', async () => {
    await playTurn();
    const { stream, reservationId } = await playTurn();
    const root = await signRoot();
    for (const table of ['events', 'stream_heads'])
      await tamper(`delete from ${table} where stream_id in ($1, $2)`, stream, `budget-${reservationId}`);
    await admin.query('delete from idempotency where first_position > 7');
    await admin.query('delete from budget_balances where scope_key = $1', [`session/${stream.slice(8)}`]);
    await admin.query(
      "update budget_balances set settled_tokens = 15, reserved_tokens = 0 where scope_key like 'day/%'",
    );
    expect(await audit()).toMatchObject({ ok: true });
    const report = await audit(root);
    expect(broken(report)).toEqual(['signed-roots-match']);
    expect(report.first?.message).toBe(
      `the log ends at position 7; a root was signed at position 14 (signed ${AT})`,
    );
  });

  it('reveal a rewritten history with matching hashes and heads', async () => {
    const { stream } = await playTurn();
    const root = await signRoot();
    await tamper(`update events set hash = sha256(hash) where stream_id = $1 and stream_version = 5`, stream);
    await tamper(`update stream_heads set hash = sha256(hash) where stream_id = $1`, stream);
    expect(broken(await audit(root))).toContain('signed-roots-match');
  });

  it('are trusted only with the key', async () => {
    await playTurn();
    const other = generateKeyPairSync('ed25519').privateKey;
    const forged = signContent(await readLogRoot(reader, AT), other);
    expect((await audit(forged)).first?.message).toContain('was not signed with a key that is trusted');
  });
});

describe('an audit from a checkpoint', () => {
  it('reads only later events and knows the balances of the whole log', async () => {
    for (let i = 0; i < 3; i++) await playTurn();
    const checkpoint = await leaveCheckpoint();
    expect(checkpoint).toMatchObject({ kind: 'audit', position: 21, streams: 6 });
    await playTurn();
    const { report } = await auditFrom(checkpoint);
    expect(broken(report)).toEqual([]);
    expect(report).toMatchObject({ since: 21, events: 7, headPosition: 28 });
    const counts = Object.fromEntries(report.checks.map(({ name, checked }) => [name, checked]));
    expect(counts).toMatchObject({
      'stream-heads-match': 2,
      'balances-equal-the-log': 5,
      'signed-roots-match': 1,
    });
    expect((await leaveCheckpoint(checkpoint)).root).toBe((await leaveCheckpoint()).root);
  });

  it('knows the open items of the checkpoint', async () => {
    const { stream } = await playTurn();
    const turnId = randomUUID();
    await append(stream, [event('TurnRequested', { turnId, content: 'more', requestedAt: AT })]);
    const checkpoint = await leaveCheckpoint();
    await append(stream, [event('TurnCancelled', { turnId, cancelledAt: AT })]);
    const { report } = await auditFrom(checkpoint);
    expect(broken(report)).toEqual([]);
    expect(report.checks.find(({ name }) => name === 'turns-end-once')).toMatchObject({
      checked: 2,
      open: 0,
    });
  });

  it('reports a later violation and creates no checkpoint', async () => {
    const { stream, turnId } = await playTurn();
    const checkpoint = await leaveCheckpoint();
    await append(stream, [event('TurnCancelled', { turnId, cancelledAt: AT })]);
    const result = await auditFrom(checkpoint);
    expect(result.report.first).toMatchObject({ check: 'turns-end-once', position: 8 });
    expect(result.checkpoint).toBeNull();
  });

  it('reports a changed stream without later events', async () => {
    const { stream } = await playTurn();
    const checkpoint = await leaveCheckpoint();
    await playTurn();
    await admin.query('update stream_heads set hash = sha256(hash) where stream_id = $1', [stream]);
    expect(broken((await auditFrom(checkpoint)).report)).toEqual(['signed-roots-match']);
  });

  it('rejects a checkpoint with another key, a change or another history', async () => {
    await playTurn();
    const checkpoint = await leaveCheckpoint();
    const text = JSON.stringify(checkpoint);
    const other = createPublicKey(generateKeyPairSync('ed25519').privateKey);
    expect(() => parseCheckpoint(text, other)).toThrow(/not signed with this key/);
    expect(() => parseCheckpoint(text.replace('"position":7', '"position":6'), publicKey)).toThrow(
      /not signed/,
    );
    expect(() => parseCheckpoint('{', publicKey)).toThrow(/not JSON/);
    await tamper('update log_head set epoch = 2');
    await expect(auditFrom(checkpoint)).rejects.toMatchObject({ code: 'AUDIT.BAD_CHECKPOINT' });
  });
});
