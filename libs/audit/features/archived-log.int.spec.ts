import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { REST_RULES } from '@antiphon/contracts/events';
import { archiveEvents, listArchives, readLogRoot, restoreArchive, signContent } from '@antiphon/event-store';
import type { AuditReport } from './audit-report.js';
import { AT, admin, event, append, inAuditWorld, playTurn, reader } from './audit-world.spec.js';
import { parseCheckpoint } from './audit-checkpoint.js';
import { auditLog, runAudit } from './run-audit.js';

inAuditWorld();

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'antiphon-archive-'));
});
afterEach(() => rm(folder, { recursive: true }));

const { privateKey } = generateKeyPairSync('ed25519');
const publicKey = createPublicKey(privateKey);
const archive = async (position: number) =>
  (await archiveEvents({ pool: admin, folder, rules: REST_RULES, before: { position } }))!;
const audit = (): Promise<AuditReport> => runAudit({ pool: reader, archives: folder });
const broken = ({ checks }: AuditReport) =>
  checks.filter(({ violations }) => violations > 0).map(({ name }) => name);

describe('the audit of an archived log', () => {
  it('covers the whole log before an archive, after it and after its restore', async () => {
    const begin = signContent(await readLogRoot(reader, AT), privateKey);
    for (let i = 0; i < 3; i++) await playTurn();
    const before = await audit();
    const root = signContent(await readLogRoot(reader, AT), privateKey);
    const made = await archive(14);
    expect(made).toMatchObject({ streams: 4, events: 14 });
    await playTurn();
    const after = await runAudit({
      pool: reader,
      archives: folder,
      trusted: { publicKeys: [publicKey], roots: [begin, root] },
    });
    expect(broken(after)).toEqual([]);
    expect(after).toMatchObject({ ok: true, events: before.events + 7, headPosition: 28 });
    expect(after.checks.find(({ name }) => name === 'archives-are-whole')?.checked).toBe(1);
    expect(after.checks.find(({ name }) => name === 'hash-chains-are-whole')?.checked).toBe(28);
    await restoreArchive(admin, folder, made.archiveId);
    expect(await audit()).toMatchObject({ ok: true, events: 28 });
  });

  it('reads several files, and streams that continued after their archive', async () => {
    const { stream } = await playTurn();
    await playTurn();
    await archive(7);
    const turn = { turnId: '0192f0c1-7a2b-7c3d-8e4f-000000000007' };
    await append(stream, [
      event('TurnRequested', { ...turn, content: 'x', requestedAt: AT }),
      event('TurnFailed', { ...turn, code: 'SPEC', cause: { kind: 'text', text: 'x' }, failedAt: AT }),
    ]);
    await playTurn();
    expect(broken(await audit())).toEqual([]);
    await archive(16);
    expect(await listArchives(reader)).toHaveLength(2);
    expect(await audit()).toMatchObject({ ok: true, events: 23 });
  });

  it('continues from a checkpoint that was signed before the archive', async () => {
    for (let i = 0; i < 2; i++) await playTurn();
    const { checkpoint } = await auditLog({ pool: reader });
    const since = parseCheckpoint(JSON.stringify(signContent(checkpoint!(AT), privateKey)), publicKey);
    await archive(7);
    await playTurn();
    const { report } = await auditLog({
      pool: reader,
      archives: folder,
      since,
      trusted: { publicKeys: [publicKey], roots: [] },
    });
    expect(broken(report)).toEqual([]);
    expect(report).toMatchObject({ events: 7, since: 14 });
  });

  it('reports a changed event in a file, and the file', async () => {
    await playTurn();
    await playTurn();
    const { file } = await archive(7);
    const text = gunzipSync(await readFile(join(folder, file))).toString();
    const changed = text.replace('"finishReason": "stop"', '"finishReason": "length"');
    expect(changed).not.toBe(text);
    await writeFile(join(folder, file), gzipSync(changed));
    const report = await audit();
    expect(broken(report)).toEqual(['archives-are-whole', 'hash-chains-are-whole']);
    expect(report.first?.check).toBe('hash-chains-are-whole');
  });

  it('reports only a missing or unreadable file', async () => {
    await playTurn();
    await playTurn();
    const { file } = await archive(7);
    await writeFile(join(folder, file), 'no gzip');
    expect(broken(await audit())).toEqual(['archives-are-whole']);
    await rm(join(folder, file));
    const report = await audit();
    expect(report).toMatchObject({ ok: false });
    expect(report.first?.message).toContain(`the archive file ${file} cannot be read in ${folder}`);
  });

  it('reports a recorded file outside of the folder', async () => {
    await playTurn();
    await playTurn();
    const { file } = await archive(7);
    await admin.query('alter table log_archives drop constraint log_archives_file');
    await admin.query(`update log_archives set file = '../' || file`);
    expect((await audit()).first?.message).toBe(`the archive file ../${file} names another folder`);
  });

  it('reports a checkpoint that was forged to hide events', async () => {
    const { stream } = await playTurn();
    await playTurn();
    await archive(7);
    await playTurn();
    await admin.query(
      `insert into archived_streams select workspace, stream_id, 1, version, '\\x00', gen_random_uuid() from stream_heads
       where stream_id <> $1 and stream_id like 'session-%' limit 1`,
      [stream],
    );
    await admin.query(`delete from events e using archived_streams a
      where a.hash = '\\x00' and a.stream_id = e.stream_id`);
    expect(broken(await audit())).toEqual(
      expect.arrayContaining(['archives-are-whole', 'positions-are-gapless', 'stream-heads-match']),
    );
  });
});
