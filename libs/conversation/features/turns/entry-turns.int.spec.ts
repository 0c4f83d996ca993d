import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { turnsOfEntry } from '@antiphon/contracts/memory';
import type { RequestClient } from '@antiphon/messaging';
import { createTestDatabase } from '@antiphon/testing';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { says } from '@antiphon/agent-features/testing/test-model';
import { ContextSizer } from './context-sizer.js';
import { ListTurnsOfEntry } from './entry-turns.handler.js';

jest.setTimeout(30_000);

const FACT = {
  ...{ factId: randomUUID(), subject: 'user', predicate: 'name', object: 'Ada', confidence: 0.9 },
  ...{ learnedAt: '2026-11-22T10:00:00.000Z', supersededAt: null, sourceEventId: randomUUID() },
};

let world: AgentWorld;
let agent: TestProcess;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  world.model.reply = async () => says('ok');
  // Memory selects the fact for messages about a name only.
  world.responders.assemble = async ({ atLeast, query }) => ({
    ...{ soul: null, facts: query.includes('name') ? [FACT] : [], tokens: 7, version: atLeast },
  });
  agent = world.process();
});
afterAll(() => world?.close());

/** Sends messages. Returns the candidates that memory would list for the fact, newest first. */
const talk = async (...contents: string[]) => {
  const target = { address: newAddress() };
  let sessionId = '';
  for (const [index, content] of contents.entries()) {
    ({ sessionId } = await submitTo(agent, target, content));
    await world.ended(sessionId, index + 1);
  }
  const asked = (await world.events(sessionId)).filter(({ type }) => type === 'TurnRequested');
  return asked.reverse().map(({ data, streamVersion: version, position }) => ({
    ...{ sessionId, sessionKey: 'key', agentId: 'main', turnId: String(data['turnId']), version, position },
    isDeleted: data['content'] === 'a deleted name',
  }));
};

/** Lists turns with candidates in place of those of the memory service. */
const list = async (
  turns: readonly object[],
  more: { includesContent?: boolean; hasMore?: boolean } = {},
) => {
  const { services } = agent.runtime;
  const asked: object[] = [];
  const request = async (contract: { subject: string }, payload: object, options: object) => {
    if (contract.subject !== turnsOfEntry.subject)
      return services.requests.request(contract as never, payload as never, options);
    asked.push(payload);
    return { turns, hasMore: more.hasMore ?? false, position: 90, head: 99 };
  };
  const requests = { ...services.requests, request } as unknown as RequestClient;
  const handler = new ListTurnsOfEntry(services.agents, services.store, requests, agent.get(ContextSizer));
  const common = { workspace: WORKSPACE, memoryId: FACT.factId, limit: 20 };
  const reply = await handler.handle({ ...common, includesContent: more.includesContent ?? true });
  return { reply, asked };
};

describe('the turns of an entry', () => {
  it('are those whose context had it, with their messages, the newest first', async () => {
    const turns = await talk('what is my name?', 'what day is it?', `the name ${'n'.repeat(300)}`);
    const [newest, , oldest] = turns;
    const { reply } = await list(turns);
    expect(reply.turns.map(({ turnId }) => turnId)).toEqual([newest?.turnId, oldest?.turnId]);
    expect(reply.turns[1]).toMatchObject({
      ...{ sessionId: oldest?.sessionId, agentId: 'main', position: oldest?.position },
      content: 'what is my name?',
    });
    expect(reply.turns[0]?.content).toHaveLength(200);
    expect(reply.nextCursor).toBeNull();
    // The facts are those before the request of each turn.
    const positions = world.responders.asked.assemble.slice(-3).map(({ position }) => position);
    expect(positions).toEqual(turns.map(({ position }) => position - 1));
  });

  it('have no message without the right, and none that was deleted', async () => {
    const turns = await talk('my name', 'a deleted name');
    const contents = async (includesContent: boolean) =>
      (await list(turns, { includesContent })).reply.turns.map(({ content }) => content);
    expect(await contents(true)).toEqual([null, 'my name']);
    expect(await contents(false)).toEqual([null, null]);
  });

  it('continue after a page in which no turn had it, and leave out an archived turn', async () => {
    const turns = await talk('what day is it?');
    const archived = { ...turns[0], version: 1_000, turnId: randomUUID() };
    const { reply } = await list([archived, ...turns], { hasMore: true });
    expect(reply.turns).toEqual([]);
    expect(Buffer.from(reply.nextCursor ?? '', 'base64url').toString()).toBe(`p${turns[0]?.position}`);
  });
});
