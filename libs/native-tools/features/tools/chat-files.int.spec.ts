import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { ChatView } from '@antiphon/contracts/agent';
import { createTestDatabase } from '@antiphon/testing';
import { Chats } from '@antiphon/conversation-features/chats/chats.handler';
import { RenameChat } from '@antiphon/conversation-features/chats/rename-chat.handler';
import {
  WORKSPACE,
  createAgentWorld,
  submitTo,
  testConfig,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { says } from '@antiphon/agent-features/testing/test-model';
import { call, runCalls } from '@antiphon/agent-features/testing/tool-calls';

jest.setTimeout(60_000);

const TOOLS = ['ls', 'read', 'write', 'edit', 'rm', 'move', 'search'];
const caller = 'ada';

let world: AgentWorld;
let agent: TestProcess;
let chats: Chats;

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process({ config: testConfig({ tools: TOOLS, maxIterations: 20, readChats: true }) });
  chats = agent.get(Chats);
}, 60_000);
afterEach(() => void jest.restoreAllMocks());
afterAll(() => world?.close(), 30_000);

/** Creates a chat with one message and its answer. */
const createWith = async (content: string): Promise<ChatView> => {
  world.model.reply = () => Promise.resolve(says('low at six'));
  const chat = await chats.create({ workspace: WORKSPACE, spec: { name: randomUUID() }, caller });
  await submitTo(agent, { sessionId: chat.sessionId }, content);
  await world.ended(chat.sessionId);
  return chat;
};
const headerOf = (result: string | undefined): unknown => JSON.parse(result?.split('\n')[0] ?? '');
const openedText = async (path: string): Promise<string> => {
  const { workspaceFiles } = agent.runtime.services;
  const opened = await workspaceFiles.open(WORKSPACE, await workspaceFiles.treeIdOf(WORKSPACE), path);
  return Buffer.from(await opened.readBytes()).toString('utf8');
};

describe('the file of a chat', () => {
  it('is listed with its size, read line by line and found by the tools of an agent', async () => {
    const word = randomUUID();
    const { path } = await createWith(`when is low tide, ${word}?`);
    const text = await openedText(path);
    const lines = text.replace(/\n$/, '').split('\n');
    const line = lines.findIndex((one) => one.includes(word)) + 1;
    const { results } = await runCalls(
      world,
      agent,
      call('ls', {}),
      call('read', { path }),
      call('read', { path, from: line, lines: 1 }),
      call('search', { query: word }),
      call('search', { query: `TIDE, ${word}`, ignore_case: true }),
      call('search', { query: 'low at (six|seven)', regex: true }),
    );
    expect(results[0]).toContain(`${path}\t${Buffer.byteLength(text)} bytes`);
    expect(headerOf(results[1])).toMatchObject({ path, lines: lines.length, truncated: false, seen: [] });
    expect(results[1]?.split('\n').slice(1)).toEqual(lines.map((one, index) => `${index + 1}\t${one}`));
    expect(results[2]?.split('\n').slice(1)).toEqual([`${line}\t${lines[line - 1] ?? ''}`]);
    for (const found of results.slice(3, 5)) {
      expect(headerOf(found)).toMatchObject({ returned: 1, truncated: false });
      expect(found.split('\n').slice(1)).toEqual([`${path}:${line}\t${lines[line - 1] ?? ''}`]);
    }
    expect(results[5]).toMatch(new RegExp(`\n${path}:\\d+\tlow at six`));
  });

  it('is neither listed, read nor found by an agent without read_chats, the default', async () => {
    const word = randomUUID();
    const { path } = await createWith(`the secret of another person is ${word}`);
    const usual = world.process({ config: testConfig({ tools: TOOLS, maxIterations: 20 }) });
    const { results } = await runCalls(
      world,
      usual,
      call('ls', { recursive: true }),
      call('search', { query: word }),
      call('search', { query: 'secret of', regex: true }),
      call('read', { path }),
      call('read', { path: path.toUpperCase() }),
      call('read', { path: `${randomUUID()}.chat` }),
    );
    expect(results.join('\n')).not.toContain(word);
    for (const result of results.slice(0, 3)) expect(result).not.toContain('.chat');
    for (const result of results.slice(3)) expect(result).toMatch(/^FILE.NOT_ALLOWED: .* set read_chats/);
  });

  it('is neither written, edited, removed nor moved by the tools of an agent', async () => {
    const { path } = await createWith('stay');
    const { results } = await runCalls(
      world,
      agent,
      call('read', { path }),
      call('write', { path, content: 'gone' }),
      call('edit', { path, old: 'stay', new: 'go' }),
      call('rm', { path }),
      call('rm', { path, files: 1 }),
      call('move', { path, to: 'moved.md' }),
    );
    expect(results.slice(1).map((result) => result.split(':')[0])).toEqual(Array(5).fill('FILE.VIRTUAL'));
    expect(await openedText(path)).toContain('stay');
  });

  it('that is deleted during a search does not end the search', async () => {
    const word = randomUUID();
    const [gone, kept] = [await createWith(`first ${word}`), await createWith(`second ${word}`)];
    const { workspaceFiles } = agent.runtime.services;
    const open = workspaceFiles.open.bind(workspaceFiles);
    jest.spyOn(workspaceFiles, 'open').mockImplementation(async (workspace, treeId, path, at) => {
      const names = agent.get(RenameChat);
      if (path === gone.path) await names.remove({ workspace, chat: gone.id, caller });
      return open(workspace, treeId, path, at);
    });
    const { results } = await runCalls(world, agent, call('search', { query: word }));
    expect(results[0]).toContain(`\n${kept.path}:`);
    expect(results[0]).not.toContain(gone.path);
  });

  it('is not in the tree of a forked session', async () => {
    const { path, sessionId: origin } = await createWith('before the fork');
    const { workspaceFiles } = agent.runtime.services;
    const { sessionId } = await agent.runtime.forkSession({
      workspace: WORKSPACE,
      sessionId: origin,
      caller,
    });
    const treeId = await workspaceFiles.treeIdOf(WORKSPACE, sessionId);
    const { files } = await workspaceFiles.list(WORKSPACE, treeId, { folder: '' });
    expect(files.filter((file) => file.is_virtual)).toEqual([]);
    const missing = expect.objectContaining({ code: 'FILE.NOT_FOUND' });
    await expect(workspaceFiles.open(WORKSPACE, treeId, path)).rejects.toEqual(missing);
  });
});
