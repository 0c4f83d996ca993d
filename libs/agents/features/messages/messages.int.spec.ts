import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { agentInboxStream } from '@antiphon/contracts/agent';
import type { MessageSpec } from '@antiphon/contracts/agent';

import { createTestDatabase } from '@antiphon/testing';
import { agentUuidOf } from '@antiphon/agent-log/derived-ids';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';
import { childEndedAppend } from '../lifecycle/child-ended.js';
import { Messages } from './messages.handler.js';

const config = (() => {
  const base = testConfig();
  const [main] = base.agents;
  if (!main) throw new Error('no agent');
  return { ...base, agents: ['main', 'reader', 'other'].map((id) => ({ ...main, id, name: id })) };
})();
const actor = { caller: 'spec', role: 'admin' as const, agentId: null };
const toReader: MessageSpec['to'] = { agent: 'reader' };

describe('Messages between agents', () => {
  let world: AgentWorld;
  let one: TestProcess;
  const messages = (process = one): Messages => process.get(Messages);
  const send = (text: string, to: MessageSpec['to'] = toReader, more: { idempotencyKey?: string } = {}) =>
    messages().send({
      ...{ workspace: WORKSPACE, actor, message: { type: 'AgentSpoke', to, content: { text } } },
      ...more,
    });
  const inboxOf = (agentId: string) =>
    world.store.readStream(WORKSPACE, agentInboxStream(agentUuidOf(WORKSPACE, agentId)));
  const turnOf = async (agentId: string, content = 'hi'): Promise<string> => {
    const { sessionId } = await submitTo(one, { address: newAddress(agentId) }, content);
    await world.ended(sessionId);
    return sessionId;
  };
  const receivedIn = async (sessionId: string): Promise<string[]> =>
    (await world.events(sessionId))
      .filter(({ type }) => type === 'MessagesReceived')
      .flatMap(({ data }) => data['messages'] as { content: { text: string } }[])
      .map(({ content }) => content.text);

  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
    one = world.process({ config });
    world.model.reply = async () => says('done');
  }, 60_000);
  afterAll(() => world.close(), 30_000);

  it('are in the context of the next model call, once', async () => {
    await send('the build is green');
    const first = await turnOf('reader');
    const prompt = world.model.requests
      .at(-1)
      ?.messages.map((message) => JSON.stringify(message))
      .join();
    expect(prompt).toContain('the build is green');
    expect(await receivedIn(first)).toEqual(['the build is green']);
    expect(await receivedIn(await turnOf('reader'))).toEqual([]);
    expect((await inboxOf('reader')).map(({ type }) => type)).toEqual(['AgentMessageSent', 'InboxRead']);
  });

  it('are known to a process before it is ready: its start waits for its first look at inboxes', async () => {
    const [isAsked, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const query = async (...args: Parameters<typeof world.pool.query>): Promise<unknown> => {
      const [config] = args as readonly unknown[];
      const { text = '' } = typeof config === 'object' ? (config as { text?: string }) : {};
      if (text.includes(`max(position), 0) as position from events where type = 'AgentMessageSent'`)) {
        isAsked.resolve();
        await release.promise;
      }
      return world.pool.query(...args);
    };
    const pool = new Proxy(world.pool, {
      get: (target, name) => (name === 'query' ? query : Reflect.get(target, name, target)),
    });
    const process = world.process({ config, pool });
    let isReady = false;
    void process.started.then(() => (isReady = true));
    await isAsked.promise;
    // A turn needs all else that a start waits for.
    const { sessionId } = await submitTo(process, { address: newAddress('other') });
    await world.ended(sessionId);
    expect(isReady).toBe(false);
    release.resolve();
    await process.started;
  });

  // @shows agents-A6
  it('reach a turn between its steps', async () => {
    let step = 0;
    world.model.reply = async () => {
      if (++step > 1) return says('done');
      await send('in between');
      return asksFor({ name: 'echo' });
    };
    const session = await turnOf('reader');
    expect(await receivedIn(session)).toEqual(['in between']);
    const types = await world.types(session);
    expect(types.indexOf('MessagesReceived')).toBeGreaterThan(types.indexOf('ToolCallCompleted'));
    expect(world.model.requests.at(-1)?.messages.at(-1)).toMatchObject({ role: 'user' });
    world.model.reply = async () => says('done');
  });

  it('are stored once for a repeated idempotency key', async () => {
    const sent = await send('once', toReader, { idempotencyKey: 'k1' });
    expect(await send('once', toReader, { idempotencyKey: 'k1' })).toEqual(sent);
    expect(await receivedIn(await turnOf('reader'))).toEqual(['once']);
  });

  // @shows N2
  it('to a topic are one event, which every follower reads and no other agent', async () => {
    const subscribe = (agentId: string, subscribed = true) =>
      messages().subscribe({ workspace: WORKSPACE, agentId, topic: 'news', subscribed, actor });
    await send('before', { topic: 'news' });
    expect(await subscribe('reader')).toEqual({ topics: ['news'] });
    await subscribe('main');
    await send('extra', { topic: 'news' });
    expect(await receivedIn(await turnOf('reader'))).toEqual(['extra']);
    expect(await receivedIn(await turnOf('main'))).toEqual(['extra']);
    expect(await receivedIn(await turnOf('other'))).toEqual([]);
    await subscribe('reader', false);
    await send('later', { topic: 'news' });
    expect(await receivedIn(await turnOf('reader'))).toEqual([]);
  });

  // @shows agents-A6
  it('to everyone reach every agent', async () => {
    await send('all', { everyone: true });
    for (const id of ['reader', 'other']) expect(await receivedIn(await turnOf(id))).toEqual(['all']);
  });

  it('are refused where the content does not match the type, or is too large', async () => {
    const message = { type: 'AgentSpoke' as const, to: toReader, content: { words: 'x' } };
    await expect(messages().send({ workspace: WORKSPACE, actor, message })).rejects.toMatchObject({
      code: 'MESSAGE.INVALID',
    });
    await expect(send('x'.repeat(70_000))).rejects.toMatchObject({ code: 'MESSAGE.INVALID' });
    await expect(send('x', { agent: 'missing-agent' })).rejects.toMatchObject({ code: 'AGENT.NOT_FOUND' });
  });

  it('of an agent and the topics that it follows are listed newest first, with what was read', async () => {
    await send('unread');
    const page = await messages().list({ workspace: WORKSPACE, agentId: 'reader', limit: 2 });
    expect(page.messages.map(({ content, isRead }) => [content['text'], isRead])).toEqual([
      ['unread', false],
      ['all', true],
    ]);
    const rest = { workspace: WORKSPACE, agentId: 'reader', limit: 2, cursor: page.nextCursor ?? '' };
    expect((await messages().list(rest)).messages.map(({ content }) => content['text'])).toEqual([
      'once',
      'in between',
    ]);
    expect(await receivedIn(await turnOf('reader'))).toEqual(['unread']);
  });

  it('are listed as of a position, with the topics and the reads of that time', async () => {
    const headOf = () => world.store.headPosition();
    const listAt = async (at?: number) => {
      const page = await messages().list({ workspace: WORKSPACE, agentId: 'reader', limit: 2, at });
      return { ...page, shown: page.messages.map(({ content, isRead }) => [content['text'], isRead]) };
    };
    const topic = { workspace: WORKSPACE, agentId: 'reader', topic: 'tides', actor };
    await messages().subscribe({ ...topic, subscribed: true });
    await send('high tide', { topic: 'tides' });
    const unread = await headOf();
    await turnOf('reader');
    const read = await headOf();
    await messages().subscribe({ ...topic, subscribed: false });
    await send('after');
    expect((await listAt()).shown[0]).toEqual(['after', false]);
    const [before, then] = [await listAt(unread), await listAt(read)];
    expect(before.shown[0]).toEqual(['high tide', false]);
    expect(then.shown[0]).toEqual(['high tide', true]);
    expect([then.position, then.head]).toEqual([read, await headOf()]);
    await expect(listAt(0)).rejects.toMatchObject({ code: 'AGENT.NOT_FOUND' });
    await expect(listAt((await headOf()) + 1)).rejects.toMatchObject({ code: 'LOG.POSITION_AHEAD' });
    expect(await receivedIn(await turnOf('reader'))).toEqual(['after']);
  });

  it('are in one context although two sessions of the agent step at once', async () => {
    await Promise.all(Array.from({ length: 20 }, (_, index) => send(`m${index}`)));
    const sessions = await Promise.all(Array.from({ length: 6 }, () => turnOf('reader')));
    const all = (await Promise.all(sessions.map(receivedIn))).flat();
    expect(all.sort()).toEqual(Array.from({ length: 20 }, (_, index) => `m${index}`).sort());
  });

  it('of another process are seen by its recipient', async () => {
    const two = world.process({ config });
    await turnOf('reader');
    await messages(two).send({
      ...{ workspace: WORKSPACE, actor },
      message: { type: 'AgentSpoke', to: toReader, content: { text: 'from two' } },
    });
    await until(() => one.runtime.services.inboxSignals.mayHaveMessages(WORKSPACE, 'reader'));
    expect(await receivedIn(await turnOf('reader'))).toEqual(['from two']);
  });

  it('cost a turn without them no statement', async () => {
    const { inboxSignals } = one.runtime.services;
    // A poll may find the messages of earlier tests once more. A turn after it has read the inbox.
    await until(async () => {
      await turnOf('other');
      return !inboxSignals.mayHaveMessages(WORKSPACE, 'other');
    });
    const session = await turnOf('other');
    expect(await world.types(session)).not.toContain('MessagesReceived');
  });

  it('about the end of a child exist once, in the inbox of its parent only', async () => {
    const result = { status: 'completed' as const, text: 'found', sessionId: null, turnId: null, code: null };
    const ended = {
      ...{ workspace: WORKSPACE, parentId: 'other', childId: 'child-1', result },
      ...{ causeId: 'e1', at: new Date().toISOString() },
    };
    const { store } = one.runtime.services;
    await store.append({ workspace: WORKSPACE, streams: [childEndedAppend(ended)] });
    await expect(
      store.append({
        workspace: WORKSPACE,
        streams: [childEndedAppend({ ...ended, at: new Date(0).toISOString() })],
      }),
    ).rejects.toMatchObject({ code: 'LOG.EVENT_ID_CONFLICT' });
    expect(await receivedIn(await turnOf('other'))).toEqual(['found']);
    expect(await receivedIn(await turnOf('reader'))).toEqual([]);
  });
});
