import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@antiphon/kernel';
import { AT, admin, appendFacts, inAuditWorld, reader, rewrite, tamper } from './audit-world.spec.js';
import { runAudit } from './run-audit.js';

inAuditWorld();

const STREAM = 'file-tree-00000000-0000-4000-8000-000000000009';
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const store = (text: string, digest = digestOf(text)): Promise<unknown> =>
  tamper(
    `insert into file_blobs (workspace, digest, size, body, written_at)
     values ('default', $1, $2, $3, now()) on conflict (workspace, digest) do update set body = excluded.body`,
    ...[digest, text.length, Buffer.from(text)],
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
    await tamper(sql);
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

  it('fails at a change over the quotas that the log names', async () => {
    await writeTree();
    const quotas = { maxFileBytes: 10, maxFiles: 10, maxBytes: 5, maxVersions: 10 };
    await rewrite(STREAM, 1, `data = data || '${JSON.stringify({ quotas })}'`);
    const { checks } = await audit();
    expect(checks.find(({ name }) => name === 'file-trees-stay-within-quotas')).toMatchObject({
      ...{ violations: 1, checked: 1 },
      first: { message: 'the tree has 6 of maxBytes = 5', position: 2 },
    });
  });
});

const ERASURES = 'file-erasures-00000000-0000-4000-8000-000000000011';
const eraseBytes = (): Promise<unknown> =>
  admin.query(`update file_blobs set body = '', erased_at = now() where digest = '${digestOf('one')}'`);
const eraseFact = (): Promise<unknown> => {
  const data = { cause: { actor: 'local' }, at: AT, digest: digestOf('one'), size: 3, reason: null };
  return appendFacts([ERASURES, ['FileBytesErased', data]]);
};

describe('an audit of erased bytes', () => {
  it('passes where a fact says that they are erased', async () => {
    await writeTree();
    await eraseFact();
    await eraseBytes();
    expect((await audit()).first).toBeNull();
  });

  it.each([
    ['no fact says so', eraseBytes, 'were erased, and no fact says so'],
    [
      'a fact says so, and they are still there',
      eraseFact,
      'are stored, and a fact says that they are erased',
    ],
  ])('fails where %s', async (_, alter, message) => {
    await writeTree();
    await alter();
    const { first } = await audit();
    expect(first).toMatchObject({ check: 'cited-bytes-are-stored', position: 1 });
    expect(first?.message).toContain(message);
  });
});

const SESSION = '00000000-0000-4000-8000-000000000020';
const CHAT = '00000000-0000-4000-8000-000000000021';
const started = { sessionId: SESSION, sessionKey: 'k', agentId: 'main', startedAt: AT };
const chat = {
  ...{ chatId: CHAT, name: 'plans', path: 'plans.chat', agentId: 'main', role: null, sessionId: SESSION },
  ...{ createdBy: 'local', createdAt: AT },
};
const attached = { path: 'a', digest: digestOf('one'), size: 3, actor: 'local', at: AT };
const writeChat = async (): Promise<void> => {
  await store('one');
  await appendFacts([`chat-${CHAT}`, ['ChatCreated', chat]]);
  await appendFacts([`session-${SESSION}`, ['SessionStarted', started], ['ChatFileAttached', attached]]);
};

describe('an audit of chats', () => {
  it('passes and counts chats and attached files', async () => {
    await writeChat();
    const { ok, checks } = await audit();
    const counts = Object.fromEntries(checks.map(({ name, checked }) => [name, checked]));
    expect(ok).toBe(true);
    expect(counts).toMatchObject({ 'chats-begin-once': 1, 'chats-have-one-session': 1 });
    expect(counts).toMatchObject({ 'cited-bytes-are-stored': 1 });
  });

  it.each([
    ['another path', `data = jsonb_set(data, '{path}', '"notes.chat"')`, 'chats-begin-once'],
    [
      'a session that never started',
      `data = jsonb_set(data, '{sessionId}', '"${CHAT}"')`,
      'chats-have-one-session',
    ],
    ['another agent', `data = jsonb_set(data, '{agentId}', '"other"')`, 'chats-have-one-session'],
  ])('fails at a chat with %s', async (_, change, check) => {
    await writeChat();
    await rewrite(`chat-${CHAT}`, 1, change);
    const { ok, checks } = await audit();
    expect([ok, checks.find(({ name }) => name === check)?.violations]).toEqual([false, 1]);
  });

  it('fails at two chats of one name', async () => {
    await writeChat();
    const other = { ...chat, chatId: SESSION, name: 'PLANS', path: 'PLANS.chat' };
    await appendFacts([`chat-${SESSION}`, ['ChatCreated', other]]);
    const { checks } = await audit();
    // Both chats share the name and the session.
    expect(checks.find(({ name }) => name === 'chats-have-one-session')).toMatchObject({ violations: 4 });
  });

  it('passes where a chat was renamed or deleted before another one took its name', async () => {
    const change = { chatId: CHAT, name: 'notes', actor: 'local', at: AT };
    const renamed = { ...change, path: 'notes.chat', before: 'plans' };
    await appendFacts([
      `chat-${CHAT}`,
      ['ChatCreated', chat],
      ['ChatRenamed', renamed],
      ['ChatDeleted', change],
    ]);
    await appendFacts([`session-${SESSION}`, ['SessionStarted', started]]);
    const other = '00000000-0000-4000-8000-000000000022';
    const next = { ...chat, chatId: other, name: 'NOTES', path: 'NOTES.chat', sessionId: other };
    await appendFacts([`chat-${other}`, ['ChatCreated', next]]);
    await appendFacts([`session-${other}`, ['SessionStarted', { ...started, sessionId: other }]]);
    expect(await audit()).toMatchObject({ ok: true });
  });

  it('fails at an attached file whose bytes are missing', async () => {
    await writeChat();
    await admin.query('delete from file_blobs');
    expect((await audit()).first).toMatchObject({ check: 'cited-bytes-are-stored', position: 3 });
  });
});
