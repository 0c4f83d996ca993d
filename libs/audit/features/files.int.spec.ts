import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@antiphon/kernel';
import { AT, admin, appendFacts, inAuditWorld, reader, rewrite } from './audit-world.spec.js';
import { runAudit } from './run-audit.js';

inAuditWorld();

const STREAM = 'file-tree-00000000-0000-4000-8000-000000000009';
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const store = (text: string, digest = digestOf(text)): Promise<unknown> =>
  admin.query(
    `insert into file_blobs (workspace, digest, size, body, written_at)
     values ('default', $1, $2, $3, now()) on conflict (workspace, digest) do update set body = excluded.body`,
    [digest, text.length, Buffer.from(text)],
  );
const written = (path: string, text: string, before: string | null): [string, JsonObject] => [
  'FileWritten',
  { path, digest: digestOf(text), before, size: text.length, mode: 0o644, cause: { actor: 'local' }, at: AT },
];

/** A tree of two versions of one file, with its bytes. */
const writeTree = async (): Promise<void> => {
  await store('one');
  await store('two');
  await appendFacts([STREAM, written('a', 'one', null), written('a', 'two', digestOf('one'))]);
};
const audit = () => runAudit({ pool: reader });

describe('an audit of files', () => {
  it('passes and counts changes and digests', async () => {
    await writeTree();
    const { ok, checks } = await audit();
    const counts = Object.fromEntries(checks.map(({ name, checked }) => [name, checked]));
    expect(ok).toBe(true);
    expect(counts).toMatchObject({ 'file-trees-fold-in-order': 2, 'cited-bytes-are-stored': 2 });
  });

  it.each([
    ['are missing', `delete from file_blobs where digest = '${digestOf('one')}'`, 1],
    ['are other ones', `update file_blobs set body = 'x' where digest = '${digestOf('two')}'`, 2],
  ])('fails at the first event whose bytes %s', async (_, sql, position) => {
    await writeTree();
    await admin.query(sql);
    const { ok, first } = await audit();
    expect([ok, first?.check, first?.position]).toEqual([false, 'cited-bytes-are-stored', position]);
  });

  it('fails at a change that begins with other bytes', async () => {
    await writeTree();
    await rewrite(STREAM, 2, `data = jsonb_set(data, '{before}', 'null')`);
    const { ok, checks } = await audit();
    expect(ok).toBe(false);
    expect(checks.find(({ name }) => name === 'file-trees-fold-in-order')).toMatchObject({ violations: 1 });
  });
});
