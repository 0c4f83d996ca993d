import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { listTopics, listWorkspaceMessages, type MessageSpec } from '@antiphon/contracts/agent';
import { createTestDatabase } from '@antiphon/testing';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { says } from '@antiphon/agent-features/testing/test-model';
import { ListMessages } from './list-messages.handler.js';
import { Messages } from './messages.handler.js';

jest.setTimeout(60_000);

const config = (() => {
  const base = testConfig();
  const [main] = base.agents;
  if (!main) throw new Error('no agent');
  return { ...base, agents: ['main', 'reader', 'other'].map((id) => ({ ...main, id, name: id })) };
})();
const actor = { caller: 'spec', role: 'admin' as const, agentId: null };

let world: AgentWorld;
let agent: TestProcess;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process({ config });
  world.model.reply = async () => says('done');
});
afterAll(() => world.close());

const send = async (text: string, to: MessageSpec['to'], more: Partial<MessageSpec> = {}, from?: string) => {
  const message = { type: 'AgentSpoke' as const, to, content: { text }, ...more };
  const by = from === undefined ? actor : { ...actor, agentId: from };
  return (await agent.get(Messages).send({ workspace: WORKSPACE, actor: by, message })).messageId;
};
const list = (query: object = {}) =>
  agent.get(ListMessages).list(listWorkspaceMessages.request.parse({ workspace: WORKSPACE, ...query }));
const textsOf = async (query: object) => (await list(query)).messages.map(({ content }) => content['text']);

describe('the messages of a workspace', () => {
  it('are listed with read marks, filtered, in pages, as of a position, and apart from other workspaces', async () => {
    const first = await send('to reader', { agent: 'reader' });
    await send('to other', { agent: 'other' }, { type: 'Request' });
    await send('to a topic', { topic: 'news' });
    await send('to all', { everyone: true });
    const head = await world.store.headPosition();
    const { sessionId } = await submitTo(agent, { address: newAddress('reader') });
    await world.ended(sessionId);
    await send('an answer', { agent: 'other' }, { cause: first }, 'reader');
    const { messages } = await list();
    expect(messages.map(({ content, isRead }) => [content['text'], isRead])).toEqual([
      ['an answer', false],
      ['to all', null],
      ['to a topic', null],
      ['to other', false],
      ['to reader', true],
    ]);
    expect(await textsOf({ agent: 'reader' })).toEqual(['an answer', 'to reader']);
    expect(await textsOf({ topic: 'news' })).toEqual(['to a topic']);
    expect(await textsOf({ topic: 'everyone' })).toEqual(['to all']);
    expect(await textsOf({ type: 'Request' })).toEqual(['to other']);
    expect(await textsOf({ cause: first })).toEqual(['an answer']);
    const page = await list({ limit: 2 });
    expect(page.messages.map(({ content }) => content['text'])).toEqual(['an answer', 'to all']);
    expect(await textsOf({ limit: 2, cursor: page.nextCursor })).toEqual(['to a topic', 'to other']);
    // Before the turn of the reader its message was not read, and the answer was not sent.
    const then = await list({ at: head });
    expect(then.messages.map(({ isRead }) => isRead)).toEqual([null, null, false, false]);
    expect((await list({ workspace: 'elsewhere' })).messages).toEqual([]);
  });

  it('reach topics that an agent follows, which are listed', async () => {
    const topics = (query: object = {}) =>
      agent
        .get(ListMessages)
        .topics(listTopics.request.parse({ workspace: WORKSPACE, agentId: 'main', ...query }));
    const subscribe = (topic: string, subscribed = true) =>
      agent.get(Messages).subscribe({ workspace: WORKSPACE, agentId: 'main', topic, subscribed, actor });
    await subscribe('tides');
    await subscribe('news');
    const head = await world.store.headPosition();
    await subscribe('tides', false);
    expect((await topics()).topics).toEqual(['news']);
    expect((await topics({ at: head })).topics).toEqual(['news', 'tides']);
    await expect(topics({ agentId: 'missing' })).rejects.toMatchObject({ code: 'AGENT.NOT_FOUND' });
  });
});
