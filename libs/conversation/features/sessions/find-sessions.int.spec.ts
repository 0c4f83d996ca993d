import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import type { ChatView } from '@antiphon/contracts/agent';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { says } from '@antiphon/agent-features/testing/test-model';
import { ChangeChat } from '../chats/change-chat.handler.js';
import { Chats } from '../chats/chats.handler.js';
import { ListChats } from '../chats/list-chats.handler.js';
import { RenameChat } from '../chats/rename-chat.handler.js';
import { ForkSession } from './fork-session.handler.js';
import { ReadSessions } from './read-sessions.handler.js';

jest.setTimeout(30_000);

let world: AgentWorld;
let agent: TestProcess;
const caller = 'ada';

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process();
  world.model.reply = async () => says('an answer about nothing');
});
afterAll(() => world?.close());

/** Begins a session by a message, and waits until lists have it. Returns its id. */
const talk = async (content: string, target: object = { address: newAddress() }) => {
  const { sessionId, turnId } = await submitTo(agent, target as never, content);
  await until(async () => (await find({})).includes(sessionId));
  await world.ended(sessionId);
  return { sessionId, turnId };
};
const list = (filter: object) =>
  agent.get(ReadSessions).list({ workspace: WORKSPACE, limit: 200, ...filter });
const find = async (filter: object): Promise<string[]> => (await list(filter)).sessions.map(({ id }) => id);
const createChat = (name: string): Promise<ChatView> =>
  agent.get(Chats).create({ workspace: WORKSPACE, spec: { name }, caller });
const findChats = async (filter: object) =>
  (await agent.get(ListChats).list({ workspace: WORKSPACE, limit: 200, order: 'recent', ...filter })).chats;

describe('a list of sessions', () => {
  it('finds words of titles, and no later message, answer or deleted message', async () => {
    const word = `ferry${Date.now()}`;
    const found = await talk(`When does the ${word} leave?`);
    const later = await talk('hello');
    await submitTo(agent, { sessionId: later.sessionId }, `and the ${word}`);
    await world.ended(later.sessionId, 2);
    const deep = await talk(`${'far '.repeat(60)} ${word}`);
    expect(await find({ titles: `('${word}':*)` })).toEqual([found.sessionId]);
    expect(await find({ titles: `('${word.slice(0, 8)}':*)` })).toContain(found.sessionId);
    expect(await find({ titles: `('${word}':*)` })).not.toContain(deep.sessionId);
    expect(await find({ titles: `('nothing':*)` })).not.toContain(found.sessionId);
    expect(await find({ titles: '' })).toEqual([]);
    const at = await world.store.headPosition();
    const chat = await createChat(randomUUID());
    const { turnId } = await talk(`the ${word} again`, { sessionId: chat.sessionId });
    expect(await find({ titles: `('${word}':*)` })).toEqual([chat.sessionId, found.sessionId]);
    expect(await find({ titles: `('${word}':*)`, at })).toEqual([found.sessionId]);
    await agent.get(ChangeChat).change({
      ...{ workspace: WORKSPACE, chatId: chat.id, sessionId: chat.sessionId, caller },
      ...{ turnId, part: 'message', content: null },
    });
    expect(await find({ titles: `('${word}':*)` })).toEqual([found.sessionId]);
  });

  it('finds the name that a chat has, and not the one that it had', async () => {
    const [before, after] = [`first${Date.now()}`, `second${Date.now()}`];
    const chat = await createChat(before);
    await talk('hello', { sessionId: chat.sessionId });
    expect(await find({ titles: `('${before}':*)` })).toEqual([chat.sessionId]);
    await agent.get(RenameChat).rename({ workspace: WORKSPACE, chat: chat.id, name: after, caller });
    expect(await find({ titles: `('${before}':*)` })).toEqual([]);
    expect(await find({ titles: `('${after}':*)` })).toEqual([chat.sessionId]);
    await agent.get(RenameChat).remove({ workspace: WORKSPACE, chat: chat.id, caller });
    expect(await find({ titles: `('${after}':*)` })).toEqual([]);
  });

  it('filters by the time of the last activity, and by a part of the agent', async () => {
    const { sessionId } = await talk('now');
    const { sessions } = await list({});
    const { lastAt, agentId = '' } = sessions.find(({ id }) => id === sessionId) ?? {};
    const time = Date.parse(lastAt ?? '');
    const plus = (ms: number): string => new Date(time + ms).toISOString();
    expect(await find({ since: plus(0), until: plus(1) })).toContain(sessionId);
    expect(await find({ since: plus(1) })).not.toContain(sessionId);
    expect(await find({ until: plus(0) })).not.toContain(sessionId);
    expect(await find({ agentPart: agentId.slice(1, 3).toUpperCase() })).toContain(sessionId);
    expect(await find({ agentPart: 'no such agent' })).toEqual([]);
  });

  it('finds the forks of a session, and names their origin', async () => {
    const { sessionId } = await talk('to be forked');
    const { sessionId: fork } = await agent
      .get(ForkSession)
      .handle({ workspace: WORKSPACE, sessionId, caller, mayUseAnyModel: true } as never);
    await until(async () => (await find({})).includes(fork));
    expect(await find({ forkedFrom: sessionId })).toEqual([fork]);
    const { sessions } = await list({ forkedFrom: sessionId });
    expect(sessions[0]?.forkedFrom).toMatchObject({ sessionId, version: expect.any(Number) });
    expect(await find({ forkedFrom: fork })).toEqual([]);
  });
});

describe('a list of chats by activity', () => {
  it('has the newest first, with state, turns and time, and filters', async () => {
    const [first, second] = [await createChat(`ebb ${randomUUID()}`), await createChat(randomUUID())];
    await talk('one', { sessionId: first.sessionId });
    await talk('two', { sessionId: second.sessionId });
    await submitTo(agent, { sessionId: first.sessionId }, 'three');
    await world.ended(first.sessionId, 2);
    await until(async () => (await findChats({}))[0]?.turns === 2);
    const chats = await findChats({});
    expect(chats.slice(0, 2).map(({ id }) => id)).toEqual([first.id, second.id]);
    await until(async () => (await findChats({}))[0]?.state === 'idle');
    expect((await findChats({}))[0]).toMatchObject({
      ...{ id: first.id, name: first.name, sessionId: first.sessionId, state: 'idle', turns: 2 },
      ...{ lastAt: expect.any(String), lastPosition: expect.any(Number) },
    });
    const word = first.name.slice(-12);
    expect((await findChats({ titles: `('${word}':*)` })).map(({ id }) => id)).toEqual([first.id]);
    await agent.get(RenameChat).remove({ workspace: WORKSPACE, chat: second.id, caller });
    expect((await findChats({})).map(({ id }) => id)).not.toContain(second.id);
  });
});
