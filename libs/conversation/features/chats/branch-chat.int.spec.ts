import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import type { ChatView } from '@antiphon/contracts/agent';
import { decideFiles } from '@antiphon/files-domain';
import { fileTreeIdOf } from '@antiphon/agent-log/derived-ids';
import { SessionTrees } from '@antiphon/files-features/trees/session-tree';
import { isoTime } from '@antiphon/kernel';
import { systemClock } from '@antiphon/observability';
import {
  WORKSPACE,
  createAgentWorld,
  submitTo,
  testConfig,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { says } from '@antiphon/agent-features/testing/test-model';
import { CancelTurn } from '../turns/cancel-turn.handler.js';
import { BranchChat } from './branch-chat.handler.js';
import { Chats } from './chats.handler.js';
import { ListChats } from './list-chats.handler.js';

jest.setTimeout(30_000);

let world: AgentWorld;
let agent: TestProcess;
let chats: Chats;
let branches: BranchChat;
const caller = 'ada';

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process();
  chats = agent.get(Chats);
  branches = agent.get(BranchChat);
  world.model.reply = async ({ messages }) => says(`answer ${messages.length}`);
});
afterAll(() => world?.close());

const writeFile = async (path: string, text: string): Promise<void> => {
  const { files } = agent.runtime.services;
  const { digest, size } = await files.putBytes(WORKSPACE, Buffer.from(text));
  await files.commit(WORKSPACE, fileTreeIdOf(WORKSPACE), (tree) => ({
    events: decideFiles(tree, [{ op: 'write', path, digest, size }], {
      ...{ at: isoTime(systemClock), cause: { actor: 'key/ada' }, limits: testConfig().files },
    }),
  }));
};

/** Creates a chat by its first message, and sends more. Returns its turns. */
const talk = async (...contents: string[]): Promise<{ chat: ChatView; turns: string[] }> => {
  const chat = await chats.create({ workspace: WORKSPACE, spec: { name: randomUUID() }, caller });
  const turns: string[] = [];
  for (const content of contents) {
    turns.push((await submitTo(agent, { sessionId: chat.sessionId }, content)).turnId);
    await world.ended(chat.sessionId, turns.length);
  }
  return { chat, turns };
};

const branchAt = (chat: ChatView, turnId = '', more: object = {}): Promise<ChatView> =>
  branches.branch({ workspace: WORKSPACE, chat: chat.id, turnId, files: 'shared', caller, ...more });
const lastPrompt = (): string[] =>
  (world.model.requests.at(-1)?.messages ?? []).map((message) => ('text' in message ? message.text : ''));
const hashOf = async ({ sessionId }: ChatView): Promise<string> =>
  createHash('sha256')
    .update(JSON.stringify(await world.events(sessionId)))
    .digest('hex');

describe('a chat that is created with files and a message', () => {
  it('has them in one append, and a repeat of the request gets the same turn', async () => {
    await writeFile('tides.md', 'low tide at six');
    const spec = { name: randomUUID(), attach: ['tides.md'], message: 'when?' };
    const request = { workspace: WORKSPACE, spec, caller, idempotencyKey: randomUUID() };
    const chat = await chats.create(request);
    await world.ended(chat.sessionId, 1);
    expect(await chats.create(request)).toEqual(chat);
    const events = await world.events(chat.sessionId);
    expect(events.slice(0, 3).map(({ type }) => type)).toEqual([
      'SessionStarted',
      'ChatFileAttached',
      'TurnRequested',
    ]);
    expect(events[2]?.data).toMatchObject({ turnId: chat.turnId, content: 'when?' });
    expect(JSON.stringify(world.model.requests.at(-1))).toContain('low tide at six');
  });

  it('is refused as a whole if a file is missing', async () => {
    const name = randomUUID();
    const create = chats.create({
      workspace: WORKSPACE,
      spec: { name, attach: ['none.md'], message: 'hi' },
      caller,
    });
    await expect(create).rejects.toMatchObject({ code: 'CHAT.FILE_NOT_FOUND' });
    await expect(chats.get({ workspace: WORKSPACE, chat: name })).rejects.toMatchObject({
      code: 'CHAT.NOT_FOUND',
    });
  });
});

describe('a branch of a chat', () => {
  it('continues before the message, with the attached files, and leaves its origin as it is', async () => {
    await writeFile('notes.md', 'the secret is 42');
    const spec = { name: randomUUID(), attach: ['notes.md'], message: 'first' };
    const chat = await chats.create({ workspace: WORKSPACE, spec, caller });
    await world.ended(chat.sessionId, 1);
    const { turnId } = await submitTo(agent, { sessionId: chat.sessionId }, 'second');
    await world.ended(chat.sessionId, 2);
    const before = await hashOf(chat);
    const at = await world.store.headPosition();
    const branch = await branchAt(chat, turnId, { content: 'another second' });
    await world.ended(branch.sessionId, 1);
    expect(branch).toMatchObject({
      name: `${chat.name} (2)`,
      branchOf: { chatId: chat.id, sessionId: chat.sessionId, turnId, rootChatId: chat.id, files: 'shared' },
    });
    const prompt = JSON.stringify(world.model.requests.at(-1));
    expect(prompt).toContain('first');
    expect(prompt).toContain('another second');
    expect(prompt).toContain('the secret is 42');
    expect(prompt).not.toContain('"second"');
    expect(await hashOf(chat)).toBe(before);
    const { chats: family } = await agent
      .get(ListChats)
      .listBranches({ workspace: WORKSPACE, chat: branch.id });
    expect(family.map(({ id, turns }) => [id, turns])).toEqual([
      [chat.id, 2],
      [branch.id, 1],
    ]);
    const past = await agent.get(ListChats).listBranches({ workspace: WORKSPACE, chat: branch.id, at });
    expect(past).toMatchObject({ position: at, chats: [{ id: chat.id, turns: 2 }] });
  });

  it('of the first message of a branch is a branch of the message that it replaced', async () => {
    const { chat, turns } = await talk('one', 'two');
    const second = await branchAt(chat, turns[1], { content: 'two again' });
    await world.ended(second.sessionId, 1);
    const third = await branchAt(second, second.turnId, { content: 'two once more' });
    await world.ended(third.sessionId, 1);
    expect(third.branchOf).toEqual(second.branchOf);
    expect(third.name).toBe(`${chat.name} (3)`);
  });

  it('of a message that waited has the answers that came before it', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    world.model.reply = async ({ messages }) => {
      await released;
      return says(`answer ${messages.length}`);
    };
    const { chat } = await talk();
    const { sessionId } = chat;
    await submitTo(agent, { sessionId }, 'runs');
    const waiting = await submitTo(agent, { sessionId }, 'waits');
    const last = await submitTo(agent, { sessionId }, 'is cancelled');
    await agent.get(CancelTurn).handle({ workspace: WORKSPACE, sessionId, turnId: last.turnId, caller });
    release();
    await world.ended(sessionId, 3);
    const branch = await branchAt(chat, waiting.turnId, { content: 'waits no more' });
    await world.ended(branch.sessionId, 1);
    expect(lastPrompt()).toEqual(['runs', 'answer 1', 'waits no more']);
    const later = await branchAt(chat, last.turnId, { content: 'at last' });
    await world.ended(later.sessionId, 1);
    expect(lastPrompt().slice(0, 3)).toEqual(['runs', 'answer 1', 'waits']);
  });

  it('uses the files of its origin, or a copy as of the message', async () => {
    await writeFile('plan.md', 'before');
    const { chat, turns } = await talk('one', 'two');
    await writeFile('plan.md', 'after');
    const { files } = agent.runtime.services;
    const trees = new SessionTrees({ store: world.store, trees: files, clock: systemClock });
    const textIn = async ({ sessionId }: ChatView): Promise<string> => {
      const treeId = await trees.treeIdOf(WORKSPACE, sessionId);
      const file = (await files.read(WORKSPACE, treeId)).files.get('plan.md');
      return Buffer.from(await files.readBytes(WORKSPACE, file?.digest ?? '')).toString('utf8');
    };
    expect(await textIn(await branchAt(chat, turns[1], { files: 'shared' }))).toBe('after');
    expect(await textIn(await branchAt(chat, turns[1], { files: 'own' }))).toBe('before');
  });

  it('is refused for a message that the chat has not', async () => {
    const { chat } = await talk('one');
    await expect(branchAt(chat, randomUUID())).rejects.toMatchObject({ code: 'CHAT.MESSAGE_NOT_FOUND' });
  });
});
