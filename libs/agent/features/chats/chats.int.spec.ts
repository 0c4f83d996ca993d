import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { ChatView } from '@antiphon/contracts/agent';
import { createTestDatabase } from '@antiphon/testing';
import { fileTreeIdOf } from '../derived-ids.js';
import { WORKSPACE, createAgentWorld, submitTo } from '../testing/agent-world.js';
import type { AgentWorld, TestProcess } from '../testing/agent-world.js';
import { says } from '../testing/test-model.js';
import { Chats } from './chats.handler.js';

jest.setTimeout(30_000);

let world: AgentWorld;
let agent: TestProcess;
let chats: Chats;
const caller = 'ada';

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process();
  chats = new Chats(agent.runtime.services);
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
    const { chats: listed } = await chats.list({ workspace: WORKSPACE, limit: 200 });
    expect(listed).toContainEqual(chat);
    expect(await chats.get({ workspace: WORKSPACE, chat: chat.name.toUpperCase() })).toEqual(chat);
  });

  it('is a virtual file that is listed and read like any other, and cannot be written', async () => {
    const chat = await create();
    await ask(chat, 'a question for the file', 1);
    const { workspaceFiles } = agent.runtime.services;
    const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
    const { files } = await workspaceFiles.list(WORKSPACE, treeId, { folder: '' });
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
    await expect(write).rejects.toThrow();
  });

  it('shows the next turn an edited message, and neither a deleted one nor its answer', async () => {
    const chat = await create();
    const first = await ask(chat, 'the secret word', 1);
    const second = await ask(chat, 'another question', 2);
    const message = { ...change(chat), part: 'message' as const };
    await chats.change({ ...message, turnId: first.turnId, content: 'the plain word' });
    await chats.change({ ...message, turnId: second.turnId, content: null });
    const { prompt } = await ask(chat, 'now', 3);
    expect(prompt).toContain('the plain word');
    expect(prompt).not.toMatch(/secret|another question/);
  });

  it('shows later turns the snapshot of an attached file, also after the file has changed', async () => {
    const chat = await create();
    await write('tides.md', 'low tide at six');
    await chats.attach({ ...change(chat), path: 'tides.md' });
    await write('tides.md', 'low tide at nine');
    const { prompt } = await ask(chat, 'when?', 1);
    expect(prompt).toContain('low tide at six');
    expect(prompt).not.toContain('nine');
    await expect(chats.attach({ ...change(chat), path: 'none.md' })).rejects.toMatchObject({
      code: 'CHAT.FILE_NOT_FOUND',
    });
  });
});
