import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { ChatView } from '@antiphon/contracts/agent';
import { inWorkspace } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import { fileTreeIdOf } from '@antiphon/agent-log/derived-ids';
import { EraseFiles } from '@antiphon/files-features/trees/erase-files.handler';
import { WORKSPACE, createAgentWorld, submitTo, until } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { hangs, promptHashOf, says } from '@antiphon/agent-features/testing/test-model';
import { ChangeChat } from './change-chat.handler.js';
import { Chats } from './chats.handler.js';
import { ListChats } from './list-chats.handler.js';
import { RenameChat } from './rename-chat.handler.js';

jest.setTimeout(30_000);

let world: AgentWorld;
let agent: TestProcess;
let chats: Chats;
let lists: ListChats;
let names: RenameChat;
const caller = 'ada';

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process();
  chats = agent.get(Chats);
  lists = agent.get(ListChats);
  names = agent.get(RenameChat);
  world.model.reply = async () => says('an answer');
});
afterAll(() => world?.close());

const create = (): Promise<ChatView> =>
  chats.create({ workspace: WORKSPACE, spec: { name: randomUUID() }, caller });
/** Sends a message. Returns its turn and the prompt that the model got for it. */
const ask = async ({ sessionId }: ChatView, content: string, turns: number) => {
  const { turnId } = await submitTo(agent, { sessionId }, content);
  await world.ended(sessionId, turns);
  return { turnId, prompt: JSON.stringify(world.model.requests.at(-1)) };
};
const change = ({ id, sessionId }: ChatView) => ({ workspace: WORKSPACE, chatId: id, sessionId, caller });
const write = async (path: string, text: string): Promise<void> => {
  const { digest, size } = await agent.runtime.services.files.putBytes(WORKSPACE, Buffer.from(text));
  const cause = { actor: 'local' };
  const data = { path, digest, before: null, size, mode: 0o644, cause, at: '2026-11-22T10:00:00.000Z' };
  const event = { eventId: randomUUID(), type: 'FileWritten', schemaVersion: 1, data };
  const events = [{ ...event, metadata: { correlationId: 'spec', service: 'agent' } }];
  const streamId = `file-tree-${fileTreeIdOf(WORKSPACE)}`;
  await world.store.append({ workspace: WORKSPACE, streams: [{ streamId, expectedVersion: 'any', events }] });
};

describe('a chat', () => {
  it('is listed and found by its name as soon as it is created', async () => {
    const chat = await create();
    const { chats: listed } = await lists.list({ workspace: WORKSPACE, limit: 200 });
    expect(listed).toContainEqual(chat);
    expect(await chats.get({ workspace: WORKSPACE, chat: chat.name.toUpperCase() })).toEqual(chat);
  });

  it('is listed as of a position with the name of that time', async () => {
    const before = await world.store.headPosition();
    const chat = await create();
    const created = await world.store.headPosition();
    await names.rename({ workspace: WORKSPACE, chat: chat.id, name: randomUUID(), caller });
    const listAt = (at: number) => lists.list({ workspace: WORKSPACE, limit: 200, at });
    expect((await listAt(before)).chats.map(({ id }) => id)).not.toContain(chat.id);
    expect(await listAt(created)).toMatchObject({
      ...{ chats: expect.arrayContaining([chat]), position: created },
      head: await world.store.headPosition(),
    });
    await expect(listAt(10 ** 9)).rejects.toMatchObject({ code: 'LOG.POSITION_AHEAD' });
  });

  // @shows chats-C1
  it('is a virtual file that is listed and read like any other, and cannot be written', async () => {
    const chat = await create();
    await ask(chat, 'a question for the file', 1);
    const { workspaceFiles } = agent.runtime.services;
    const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
    const { files, version } = await workspaceFiles.list(WORKSPACE, treeId, { folder: '' });
    expect(files).toContainEqual(expect.objectContaining({ path: chat.path, is_virtual: true }));
    const opened = await workspaceFiles.open(WORKSPACE, treeId, chat.path);
    const { entry } = opened;
    const bytes = await opened.readBytes();
    // A rendering is not stored.
    expect((await agent.runtime.services.blobs.sizes(WORKSPACE, [entry.digest])).size).toBe(0);
    expect(Buffer.from(bytes).toString('utf8')).toContain('a question for the file');
    const write = workspaceFiles.change({ workspace: WORKSPACE, treeId, cause: { actor: 'local' } }, () => [
      { op: 'write', path: chat.path, digest: entry.digest, size: entry.size },
    ]);
    await expect(write).rejects.toMatchObject({ code: 'FILE.VIRTUAL' });
    const erase = agent.get(EraseFiles);
    for (const at of [{ version }, {}]) {
      const request = { workspace: WORKSPACE, path: chat.path, actor: 'local', ...at };
      await expect(erase.handle(request)).rejects.toMatchObject({ code: 'FILE.VIRTUAL' });
    }
  });

  it('shows the next turn an edited message, and neither a deleted one nor its answer', async () => {
    const chat = await create();
    const first = await ask(chat, 'the secret word', 1);
    const second = await ask(chat, 'another question', 2);
    const message = { ...change(chat), part: 'message' as const };
    await agent.get(ChangeChat).change({ ...message, turnId: first.turnId, content: 'the plain word' });
    await agent.get(ChangeChat).change({ ...message, turnId: second.turnId, content: null });
    const { prompt } = await ask(chat, 'now', 3);
    expect(prompt).toContain('the plain word');
    expect(prompt).not.toMatch(/secret|another question/);
  });

  // @shows chats-C13
  it('shows later turns the snapshot of an attached file, also after the file has changed', async () => {
    const chat = await create();
    await write('tides.md', 'low tide at six');
    await agent.get(ChangeChat).attach({ ...change(chat), path: 'tides.md' });
    await write('tides.md', 'low tide at nine');
    const { prompt } = await ask(chat, 'when?', 1);
    expect(prompt).toContain('low tide at six');
    expect(prompt).not.toContain('nine');
    await expect(agent.get(ChangeChat).attach({ ...change(chat), path: 'none.md' })).rejects.toMatchObject({
      code: 'CHAT.FILE_NOT_FOUND',
    });
  });

  it('does not show later turns a file that is detached, and a repeat adds no fact', async () => {
    const chat = await create();
    await write('ebb.md', 'low tide at seven');
    await agent.get(ChangeChat).attach({ ...change(chat), path: 'ebb.md' });
    expect((await ask(chat, 'when?', 1)).prompt).toContain('low tide at seven');
    const { version } = await agent.get(ChangeChat).detach({ ...change(chat), path: 'ebb.md' });
    expect((await agent.get(ChangeChat).detach({ ...change(chat), path: 'ebb.md' })).version).toBe(version);
    expect((await ask(chat, 'and now?', 2)).prompt).not.toContain('low tide at seven');
    const detached = (await world.events(chat.sessionId)).filter(({ type }) => type === 'ChatFileDetached');
    expect(detached.map(({ data }) => data['path'])).toEqual(['ebb.md']);
  });

  // @shows chats-C13
  it('replays a turn with an equal prompt hash after the attached original has changed', async () => {
    const first = world.process();
    const own = first.get(Chats);
    const spec = { name: randomUUID() };
    const chat = await own.create({ workspace: WORKSPACE, spec, caller });
    const path = `${spec.name}.md`;
    await write(path, 'high tide at one');
    await first.get(ChangeChat).attach({ ...change(chat), path });
    let isBegun = false;
    world.model.reply = hangs('', () => (isBegun = true));
    const { sessionId } = await submitTo(first, { sessionId: chat.sessionId }, 'when?');
    await until(() => isBegun);
    const before = world.model.requests.at(-1);
    await write(path, 'high tide at two');
    world.model.reply = async () => says('an answer');
    first.kill();
    await world.handleExit(first);
    await world.ended(sessionId);
    const after = world.model.requests.at(-1);
    expect(after).not.toBe(before);
    expect(JSON.stringify(after)).toContain('high tide at one');
    expect(after && promptHashOf(after)).toBe(before && promptHashOf(before));
    await agent.get(ChangeChat).attach({ ...change(chat), path });
    const { prompt } = await ask(chat, 'and now?', 2);
    expect(prompt).toContain('high tide at two');
  });

  it('names an attached file whose bytes are lost, and continues', async () => {
    const chat = await create();
    const text = `low tide at ${randomUUID()}`;
    await write('lost.md', text);
    await agent.get(ChangeChat).attach({ ...change(chat), path: 'lost.md' });
    const digest = createHash('sha256').update(text).digest('hex');
    const own = inWorkspace(world.pool, WORKSPACE);
    expect((await own.query('delete from file_blobs where digest = $1', [digest])).rowCount).toBe(1);
    const { prompt } = await ask(chat, 'when?', 1);
    expect(prompt).toMatch(/lost\.md \([^)]*\)\\n\[the content of this file is lost/);
  });
});

const rename = ({ id }: ChatView, name: string, callerAgent?: string): Promise<ChatView> =>
  names.rename({ workspace: WORKSPACE, chat: id, name, caller, callerAgent });
const remove = (chat: string, callerAgent?: string) =>
  names.remove({ workspace: WORKSPACE, chat, caller, callerAgent });
const find = (chat: string, at?: number): Promise<ChatView> => chats.get({ workspace: WORKSPACE, chat, at });
const pathsOf = async (): Promise<string[]> => {
  const { workspaceFiles } = agent.runtime.services;
  const { files } = await workspaceFiles.list(WORKSPACE, fileTreeIdOf(WORKSPACE), { folder: '' });
  return files.map(({ path }) => path);
};

describe('a renamed chat', () => {
  it('keeps its id and messages, moves its file, and gives its old name free', async () => {
    const chat = await create();
    await ask(chat, 'a question before', 1);
    const name = randomUUID();
    const renamed = await rename(chat, name);
    expect(renamed).toEqual({ ...chat, name, path: `${name}.chat`, revision: 2 });
    expect(await rename(chat, name)).toEqual(renamed);
    expect([await find(name), await find(chat.id)]).toEqual([renamed, renamed]);
    await expect(find(chat.name)).rejects.toMatchObject({ code: 'CHAT.NOT_FOUND' });
    const paths = await pathsOf();
    expect([paths.includes(renamed.path), paths.includes(chat.path)]).toEqual([true, false]);
    const { workspaceFiles } = agent.runtime.services;
    const opened = await workspaceFiles.open(WORKSPACE, fileTreeIdOf(WORKSPACE), renamed.path);
    const bytes = await opened.readBytes();
    expect(Buffer.from(bytes).toString('utf8')).toMatch(new RegExp(`^# ${name}\n[^]*a question before`));
    const next = await chats.create({ workspace: WORKSPACE, spec: { name: chat.name }, caller });
    expect(next.id).not.toBe(chat.id);
    expect(await find(chat.name)).toEqual(next);
  });

  it('has the old name at its old versions, and the new one from the next version on', async () => {
    const chat = await create();
    await ask(chat, 'one', 1);
    const { version } = (
      await world.process().runtime.services.registry.requireSession(WORKSPACE, chat.sessionId)
    ).actor.fold();
    const renamed = await rename(chat, randomUUID());
    await ask(chat, 'two', 2);
    expect((await find(chat.id, version)).name).toBe(chat.name);
    expect((await find(chat.id, version + 1)).name).toBe(renamed.name);
  });

  it('gets no name of another chat, but its own in another case of its letters', async () => {
    const [chat, other] = [await create(), await create()];
    await expect(rename(chat, other.name.toUpperCase())).rejects.toMatchObject({
      ...{ code: 'CHAT.NAME_TAKEN', data: { chatId: other.id } },
    });
    expect((await rename(chat, chat.name.toUpperCase())).name).toBe(chat.name.toUpperCase());
    expect((await find(chat.name)).id).toBe(chat.id);
  });

  it('is the only one with a name that several requests want at once', async () => {
    const wanted = randomUUID();
    const made = await Promise.all(Array.from({ length: 4 }, () => create()));
    const results = await Promise.allSettled([
      ...made.map((chat) => rename(chat, wanted)),
      chats.create({ workspace: WORKSPACE, spec: { name: wanted }, caller }),
    ]);
    const won = results.flatMap((one) => (one.status === 'fulfilled' ? [one.value.id] : []));
    expect(won).toHaveLength(1);
    const refused = results.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
    for (const error of refused)
      expect(error).toMatchObject({ code: 'CHAT.NAME_TAKEN', data: { chatId: won[0] } });
    const { chats: listed } = await lists.list({ workspace: WORKSPACE, limit: 200 });
    expect(listed.filter(({ name }) => name === wanted)).toHaveLength(1);
  });
});

describe('the file of a chat', () => {
  const treeId = fileTreeIdOf(WORKSPACE);
  const textAt = async (path: string, at?: number): Promise<string> => {
    const opened = await agent.runtime.services.workspaceFiles.open(WORKSPACE, treeId, path, at);
    const text = Buffer.from(await opened.readBytes()).toString('utf8');
    const stat = await agent.runtime.services.workspaceFiles.stat(WORKSPACE, treeId, path, { at });
    expect(stat.entry.size).toBe(Buffer.byteLength(text));
    return text;
  };
  const entriesAt = async (at?: number) => {
    const { workspaceFiles } = agent.runtime.services;
    const { files, version } = await workspaceFiles.list(WORKSPACE, treeId, { folder: '', at });
    return { version, entries: await workspaceFiles.withSizes(WORKSPACE, treeId, files, { at }) };
  };

  // @shows chats-C1
  it('has at an old version of the tree the text, the name and the size of that time', async () => {
    const chat = await create();
    await ask(chat, 'the first question', 1);
    await write('mark.md', 'one');
    const { version: first } = await entriesAt();
    await ask(chat, 'the second question', 2);
    const before = await textAt(chat.path);
    await write('mark.md', 'two');
    const renamed = await rename(chat, randomUUID());
    await ask(chat, 'the third question', 3);
    await write('mark.md', 'three');
    await remove(chat.id);
    await write('mark.md', 'four');
    expect(await textAt(chat.path, first)).toBe(before);
    expect(await textAt(renamed.path, first + 1)).toMatch(
      new RegExp(`^# ${renamed.name}\n[^]*the third question`),
    );
    await expect(textAt(chat.path, first + 1)).rejects.toMatchObject({ code: 'FILE.NOT_FOUND' });
    await expect(textAt(renamed.path, first + 2)).rejects.toMatchObject({ code: 'FILE.NOT_FOUND' });
    const sizeOf = async (path: string, at?: number) =>
      (await entriesAt(at)).entries.find((entry) => entry.path === path)?.size;
    expect(await sizeOf(chat.path, first)).toBe(Buffer.byteLength(before));
    expect(await sizeOf(renamed.path, first)).toBeUndefined();
    expect(await sizeOf(renamed.path)).toBeUndefined();
  });

  it('has its size in lists, which follows its messages and its name', async () => {
    const chat = await create();
    const sizeOf = async (path: string): Promise<number | undefined> =>
      (await entriesAt()).entries.find((entry) => entry.path === path)?.size;
    const first = await sizeOf(chat.path);
    expect(first).toBe(Buffer.byteLength(await textAt(chat.path)));
    await ask(chat, 'a question', 1);
    const second = await sizeOf(chat.path);
    expect(second).toBe(Buffer.byteLength(await textAt(chat.path)));
    expect(second).toBeGreaterThan(first ?? 0);
    const renamed = await rename(chat, `${chat.name} and more`);
    expect(await sizeOf(renamed.path)).toBe((second ?? 0) + ' and more'.length);
  });
});

describe('a deleted chat', () => {
  it('has no file, is not listed, refuses commands, and gives its name free', async () => {
    const chat = await create();
    const deleted = await remove(chat.name);
    expect(await remove(chat.id)).toEqual(deleted);
    expect(await remove(chat.name)).toEqual(deleted);
    expect(await pathsOf()).not.toContain(chat.path);
    const { chats: listed } = await lists.list({ workspace: WORKSPACE, limit: 200 });
    expect(listed.map(({ id }) => id)).not.toContain(chat.id);
    const refused = { code: 'CHAT.DELETED', data: { chatId: chat.id, sessionId: chat.sessionId } };
    await expect(find(chat.id)).rejects.toMatchObject(refused);
    await expect(rename(chat, randomUUID())).rejects.toMatchObject(refused);
    const next = await chats.create({ workspace: WORKSPACE, spec: { name: chat.name }, caller });
    expect(await find(chat.name)).toEqual(next);
    expect((await remove(chat.id)).deletedAt).toBe(deleted.deletedAt);
  });

  it('takes no further messages, and no new session, by its session', async () => {
    const chat = await create();
    const { sessionId } = chat;
    await submitTo(agent, { sessionId }, 'hello');
    await world.ended(sessionId, 1);
    await remove(chat.id);
    const refused = { code: 'CHAT.DELETED', data: { chatId: chat.id, sessionId } };
    await expect(submitTo(agent, { sessionId }, 'and now?')).rejects.toMatchObject(refused);
    const started = agent.runtime.startSession({ workspace: WORKSPACE, target: { sessionId }, caller });
    await expect(started).rejects.toMatchObject(refused);
    const types = await world.types(sessionId);
    expect(types.filter((type) => type === 'TurnRequested')).toHaveLength(1);
  });

  it('has its open turn cancelled', async () => {
    const chat = await create();
    const isAsked = new Promise<void>((resolve) => {
      world.model.reply = hangs('', resolve);
    });
    await submitTo(agent, { sessionId: chat.sessionId }, 'think for ever');
    await isAsked;
    await remove(chat.id);
    await world.ended(chat.sessionId, 1);
    const events = await world.store.readStream(WORKSPACE, `session-${chat.sessionId}`);
    expect(events.at(-1)?.type).toBe('TurnCancelled');
    world.model.reply = async () => says('an answer');
  });
});

describe('the key of an agent', () => {
  it('changes no chat of another agent', async () => {
    const [chat, refused] = [await create(), { code: 'AGENT.NOT_ALLOWED' }];
    const callerAgent = 'other';
    await expect(rename(chat, randomUUID(), callerAgent)).rejects.toMatchObject(refused);
    await expect(remove(chat.id, callerAgent)).rejects.toMatchObject(refused);
    const create2 = { workspace: WORKSPACE, spec: { name: randomUUID() }, caller, callerAgent };
    await expect(chats.create(create2)).rejects.toMatchObject(refused);
    await write('own.md', 'text');
    await expect(
      agent.get(ChangeChat).attach({ ...change(chat), path: 'own.md', callerAgent }),
    ).rejects.toMatchObject(refused);
    const { turnId } = await ask(chat, 'mine', 1);
    const message = { ...change(chat), turnId, part: 'message' as const, content: 'theirs', callerAgent };
    await expect(agent.get(ChangeChat).change(message)).rejects.toMatchObject(refused);
    expect((await rename(chat, randomUUID(), chat.agentId)).revision).toBe(2);
  });
});
