import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { agentInboxStream, agentTopicStream, spawnAgent } from '@antiphon/contracts/agent';
import type { MessageSpec } from '@antiphon/contracts/agent';
import { createTestDatabase } from '@antiphon/testing';
import { agentUuidOf, topicUuidOf } from '@antiphon/agent-log/derived-ids';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { createArchiveWorld, rulesOf } from '@antiphon/agent-features/testing/archive-world';
import type { ArchiveWorld } from '@antiphon/agent-features/testing/archive-world';
import { configOfAgents } from '../testing/message-faults.js';
import { says } from '@antiphon/agent-features/testing/test-model';
import { EVERYONE } from './inbox-store.js';
import { Messages } from './messages.handler.js';

const AGENTS = ['plain', 'follower', 'late'];
const actor = { caller: 'spec', role: 'admin' as const, agentId: null };
const inbox = (agentId: string): string => agentInboxStream(agentUuidOf(WORKSPACE, agentId));
const topic = (name: string): string => agentTopicStream(topicUuidOf(WORKSPACE, name));

let world: AgentWorld;
let agent: TestProcess;
let archives: ArchiveWorld;
beforeAll(async () => {
  const database = await createTestDatabase();
  world = await createAgentWorld(database, process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  world.model.reply = async () => says('done');
  agent = world.process({ config: configOfAgents(AGENTS) });
  await agent.runtime.services.configuredAgents.record(WORKSPACE);
  archives = await createArchiveWorld(database);
}, 60_000);
afterAll(async () => {
  await archives?.close();
  await world?.close();
}, 30_000);

const messages = (): Messages => agent.get(Messages);
const send = (text: string, to: MessageSpec['to']) =>
  messages().send({
    ...{ workspace: WORKSPACE, actor, message: { type: 'AgentSpoke', to, content: { text } } },
  });
/** Takes a turn. Returns the texts of the messages that it reads. */
const read = async (agentId: string): Promise<string[]> => {
  const { sessionId } = await submitTo(agent, { address: newAddress(agentId) });
  const events = await world.ended(sessionId);
  return events
    .filter(({ type }) => type === 'MessagesReceived')
    .flatMap(({ data }) => data['messages'] as { content: { text: string } }[])
    .map(({ content }) => content.text);
};
/** Archives all that may leave. Returns how many versions of each stream are in the log. */
const archive = async (...streams: string[]): Promise<number[]> => {
  await archives.archive(rulesOf('agent'));
  return Promise.all(streams.map(inLog));
};
const inLog = async (stream: string): Promise<number> => {
  const { rows } = await archives.admin.query<{ count: string }>(
    'select count(*) from events where workspace = $1 and stream_id = $2',
    [WORKSPACE, stream],
  );
  return Number(rows[0]?.count);
};

describe('the archive of messages', () => {
  it('takes direct messages that were read, and keeps the cursor and unread ones', async () => {
    for (const text of ['one', 'two', 'three']) await send(text, { agent: 'plain' });
    expect(await read('plain')).toEqual(['one', 'two', 'three']);
    await send('unread', { agent: 'plain' });
    expect(await archive(inbox('plain'))).toEqual([2]);
    expect(await read('plain')).toEqual(['unread']);
  });

  it('keeps a message of a topic, and one to everyone, until each reader has read it', async () => {
    for (const agentId of ['follower', 'late'])
      await messages().subscribe({ workspace: WORKSPACE, agentId, topic: 'news', subscribed: true, actor });
    await send('news', { topic: 'news' });
    await send('all', { everyone: true });
    for (const agentId of ['plain', 'follower']) await read(agentId);
    expect(await archive(topic('news'), topic(EVERYONE))).toEqual([1, 1]);
    expect((await read('late')).sort()).toEqual(['all', 'news']);
    expect(await archive(topic('news'), topic(EVERYONE))).toEqual([0, 0]);
    // Both streams continue, and the inboxes still follow the topic.
    await send('more news', { topic: 'news' });
    await send('more for all', { everyone: true });
    expect((await read('late')).sort()).toEqual(['more for all', 'more news']);
    expect(await read('plain')).toEqual(['more for all']);
  });

  it('takes the whole inbox of an agent that has ended', async () => {
    const spec = { id: 'ended', name: 'Ended', base: 'plain' };
    await agent.runtime.spawnAgent(spawnAgent.request.parse({ workspace: WORKSPACE, spec, actor }));
    await send('too late', { agent: 'ended' });
    expect(await archive(inbox('ended'))).toEqual([1]);
    await agent.runtime.controlAgent({ workspace: WORKSPACE, agentId: 'ended', action: 'terminate', actor });
    await send('the newest event of the log stays', { agent: 'plain' });
    expect(await archive(inbox('ended'))).toEqual([0]);
  });

  it('loses no message: restored archives complete every stream', async () => {
    await archives.restoreAll();
    for (const stream of [inbox('plain'), inbox('ended'), topic('news'), topic(EVERYONE)]) {
      const versions = (await world.store.readStream(WORKSPACE, stream)).map((event) => event.streamVersion);
      expect(versions).toEqual(versions.map((_, index) => index + 1));
      expect(versions.length).toBeGreaterThan(0);
    }
  });
});
