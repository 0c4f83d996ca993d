import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { inWorkspace } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import { ChangeChat } from '@antiphon/conversation-features/chats/change-chat.handler';
import { Chats } from '@antiphon/conversation-features/chats/chats.handler';
import { fileErasuresIdOf } from '@antiphon/agent-log/derived-ids';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { says } from '@antiphon/agent-features/testing/test-model';
import { EraseFiles } from './erase-files.handler.js';

jest.setTimeout(30_000);

const cause = { actor: 'key/ada' };
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

let world: AgentWorld;
let agent: TestProcess;
let erasing: EraseFiles;
let treeId: string;
let count = 0;
let path: string;

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process();
  erasing = agent.get(EraseFiles);
  treeId = await agent.runtime.services.workspaceFiles.treeIdOf(WORKSPACE);
});
afterAll(() => world?.close());
beforeEach(() => {
  path = `notes${++count}.md`;
});

const write = async (text: string, to = path, session?: string): Promise<number> => {
  const { files, workspaceFiles } = agent.runtime.services;
  const tree = await workspaceFiles.treeIdOf(WORKSPACE, session);
  const { digest, size } = await files.putBytes(WORKSPACE, Buffer.from(text));
  const request = { workspace: WORKSPACE, treeId: tree, cause };
  return (await workspaceFiles.change(request, () => [{ op: 'write', path: to, digest, size }])).version;
};
const read = async (at?: number, from = path, session?: string): Promise<string> => {
  const { workspaceFiles } = agent.runtime.services;
  const tree = await workspaceFiles.treeIdOf(WORKSPACE, session);
  const opened = await workspaceFiles.open(WORKSPACE, tree, from, at);
  return Buffer.from(await opened.readBytes()).toString();
};
const erase = (subject: { path?: string; version?: number; digest?: string; session?: string }) =>
  erasing.handle({ workspace: WORKSPACE, actor: 'key/op', reason: 'personal data', ...subject });
const storedBytes = async (text: string): Promise<number | null> => {
  const own = inWorkspace(world.pool, WORKSPACE);
  const { rows } = await own.query<{ bytes: number }>(
    'select octet_length(body) as bytes from file_blobs where workspace = $1 and digest = $2',
    [WORKSPACE, digestOf(text)],
  );
  return rows[0]?.bytes ?? null;
};

describe('an erasure of bytes', () => {
  it('takes all versions of a file away from every reader, and leaves its history', async () => {
    const [first, second] = [await write(`${path} Ada`), await write(`${path} Grace`)];
    await write('shared', `other-${path}`);
    expect(await erase({ path })).toEqual({
      ...{
        erased: [digestOf(`${path} Grace`), digestOf(`${path} Ada`)],
        already: 0,
        deleted: [path],
        kept: [],
      },
    });
    expect([await storedBytes(`${path} Ada`), await storedBytes(`${path} Grace`)]).toEqual([0, 0]);
    for (const at of [first, second]) await expect(read(at)).rejects.toMatchObject({ code: 'FILE.ERASED' });
    await expect(read()).rejects.toMatchObject({ code: 'FILE.NOT_FOUND' });
    expect(await read(undefined, `other-${path}`)).toBe('shared');
    const events = await world.store.readStream(WORKSPACE, `file-erasures-${fileErasuresIdOf(WORKSPACE)}`);
    expect(events.map(({ type, data }) => [type, data['cause'], data['reason']])).toEqual(
      Array.from({ length: 2 }, () => ['FileBytesErased', { actor: 'key/op' }, 'personal data']),
    );
    const facts = await agent.runtime.services.files.readFacts(WORKSPACE, treeId, { limit: 4 });
    expect(facts.events.map(({ type, data }) => [type, data['path']])).toEqual([
      ['FileDeleted', path],
      ['FileWritten', `other-${path}`],
      ['FileWritten', path],
      ['FileWritten', path],
    ]);
  });

  /** Forks a new session, whose tree begins with the files as they are now. */
  const fork = async (): Promise<string> => {
    world.model.reply = async () => says('ok');
    const { sessionId } = await submitTo(agent, { address: newAddress('main') }, 'hello');
    await world.ended(sessionId, 1);
    return (await agent.runtime.forkSession({ workspace: WORKSPACE, sessionId, caller: 'ada' })).sessionId;
  };

  it('through a forked session deletes the files of the workspace with the same bytes', async () => {
    await write(`${path} Ada`);
    await write(`${path} Ada`, `copy-${path}`);
    const session = await fork();
    await write(`${path} of the fork`, path, session);
    await write(`${path} later`);
    await write(`${path} Ada`);
    expect(await erase({ path, session })).toEqual({
      erased: [digestOf(`${path} of the fork`), digestOf(`${path} Ada`)],
      already: 0,
      deleted: expect.arrayContaining([path, `copy-${path}`]),
      kept: [digestOf(`${path} later`)],
    });
    for (const from of [path, `copy-${path}`])
      for (const tree of [session, undefined])
        await expect(read(undefined, from, tree)).rejects.toMatchObject({ code: 'FILE.NOT_FOUND' });
    expect(await storedBytes(`${path} later`)).toBeGreaterThan(0);
  });

  it('through the workspace erases the versions of all forked sessions too', async () => {
    await write(`${path} Ada`);
    const [changed, unchanged] = [await fork(), await fork()];
    await write(`${path} of the fork`, path, changed);
    expect(await read(undefined, path, unchanged)).toBe(`${path} Ada`);
    expect(await erase({ path })).toMatchObject({
      erased: expect.arrayContaining([digestOf(`${path} Ada`), digestOf(`${path} of the fork`)]),
      kept: [],
    });
    expect(await storedBytes(`${path} of the fork`)).toBe(0);
    for (const session of [changed, unchanged])
      await expect(read(undefined, path, session)).rejects.toMatchObject({ code: 'FILE.ERASED' });
    const { workspaceFiles } = agent.runtime.services;
    for (const session of [changed, unchanged]) {
      const treeId = await workspaceFiles.treeIdOf(WORKSPACE, session);
      const { files } = await workspaceFiles.list(WORKSPACE, treeId, { folder: '' });
      expect(files.map((file) => file.path)).not.toContain(path);
    }
    // Only a forked session has had a file of this path.
    await write(`${path} alone`, `alone-${path}`, changed);
    expect((await erase({ path: `alone-${path}` })).erased).toEqual([digestOf(`${path} alone`)]);
  });

  it('through the workspace erases the versions that a fork gave another path', async () => {
    const session = await fork();
    await write(`${path} first`, `old-${path}`, session);
    await write(`${path} second`, `old-${path}`, session);
    const { workspaceFiles } = agent.runtime.services;
    const forked = await workspaceFiles.treeIdOf(WORKSPACE, session);
    const move = { op: 'move', path: `old-${path}`, to: path } as const;
    await workspaceFiles.change({ workspace: WORKSPACE, treeId: forked, cause }, () => [move]);
    const { erased, kept } = await erase({ path });
    expect([erased.toSorted(), kept]).toEqual([
      [digestOf(`${path} first`), digestOf(`${path} second`)].toSorted(),
      [],
    ]);
    expect(await storedBytes(`${path} first`)).toBe(0);
  });

  it('ends for more versions than one append takes', async () => {
    const texts = Array.from({ length: 1_100 }, (_, nth) => `${path} ${nth}`);
    const { files, workspaceFiles } = agent.runtime.services;
    const stored = await Promise.all(texts.map((text) => files.putBytes(WORKSPACE, Buffer.from(text))));
    for (let from = 0; from < stored.length; from += 50)
      await workspaceFiles.change({ workspace: WORKSPACE, treeId, cause }, () =>
        stored.slice(from, from + 50).map(({ digest, size }) => ({ op: 'write', path, digest, size })),
      );
    const { erased, deleted } = await erase({ path });
    expect([erased.length, deleted]).toEqual([texts.length, [path]]);
    expect((await erase({ path })).already).toBe(texts.length);
  });

  it('of one version leaves the others, and a repeat changes nothing', async () => {
    const first = await write(`${path} Ada`);
    await write(`${path} Grace`);
    expect(await erase({ path, version: first })).toMatchObject({
      erased: [digestOf(`${path} Ada`)],
      deleted: [],
    });
    expect(await erase({ path, version: first })).toEqual({ erased: [], already: 1, deleted: [], kept: [] });
    expect(await read()).toBe(`${path} Grace`);
    await expect(read(first)).rejects.toMatchObject({ code: 'FILE.ERASED' });
  });

  it('refuses the same bytes again, from any path', async () => {
    await write(`${path} Ada`);
    await erase({ digest: digestOf(`${path} Ada`) });
    await expect(write(`${path} Ada`, `again-${path}`)).rejects.toMatchObject({ code: 'FILE.ERASED' });
  });

  it('is ended by the sweep where the process was killed after the fact', async () => {
    await write(`${path} Ada`);
    const { blobs } = agent.runtime.services;
    const erased = jest.spyOn(blobs, 'erase').mockRejectedValueOnce(new Error('killed'));
    await expect(erase({ path })).rejects.toThrow('killed');
    erased.mockRestore();
    expect(await storedBytes(`${path} Ada`)).toBeGreaterThan(0);
    await blobs.sweep(new Date(0).toISOString());
    expect(await storedBytes(`${path} Ada`)).toBe(0);
  });

  it('of an attached file shows later turns a note in place of its content', async () => {
    const chats = agent.get(Chats);
    world.model.reply = async () => says('ok');
    const chat = await chats.create({ workspace: WORKSPACE, spec: { name: path }, caller: 'ada' });
    await write(`${path} Ada`);
    const { id: chatId, sessionId } = chat;
    await agent.get(ChangeChat).attach({ workspace: WORKSPACE, chatId, sessionId, caller: 'ada', path });
    await erase({ path });
    await submitTo(agent, { sessionId }, 'who is it?');
    await world.ended(sessionId, 1);
    const prompt = JSON.stringify(world.model.requests.at(-1));
    expect(prompt).toContain('[the content of this file was erased]');
    expect(prompt).not.toContain(`${path} Ada`);
  });

  it.each([
    ['an unknown path', { path: 'nowhere.md' }, 'FILE.NOT_FOUND'],
    ['a version without the file', { path: 'nowhere.md', version: 1 }, 'FILE.NOT_FOUND'],
    ['a chat', { path: 'talk.chat' }, 'FILE.VIRTUAL'],
    ['an unknown digest', { digest: 'f'.repeat(64) }, 'FILE.NO_BYTES'],
    ['both a path and a digest', { path: 'a', digest: 'f'.repeat(64) }, 'FILE.INVALID_PATH'],
  ])('refuses %s', (_, subject, code) => expect(erase(subject)).rejects.toMatchObject({ code }));
});
