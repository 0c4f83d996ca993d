import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { ATTEMPT_SPAN } from '@antiphon/contracts/agent';
import { createTestDatabase } from '@antiphon/testing';
import { createAgentWorld, until, WORKSPACE } from '../testing/agent-world.js';
import type { AgentWorld, TestProcess } from '../testing/agent-world.js';
import { streams } from '../testing/test-model.js';

let world: AgentWorld;
let agent: TestProcess;

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process();
});
afterAll(() => world.close());

const address = (peer = randomUUID()) => ({ agentId: 'main', channel: 'ws', account: 'a', peer });
const submit = (
  target: { address: ReturnType<typeof address> } | { sessionId: string },
  content = 'hi',
  idempotencyKey?: string,
) =>
  agent.runtime.submitTurn({
    workspace: WORKSPACE,
    target,
    content,
    caller: 'spec',
    ...(idempotencyKey ? { idempotencyKey } : {}),
  });
const typesOf = async (sessionId: string) => (await world.events(sessionId)).map(({ type }) => type);
const ended = (sessionId: string, turns = 1) =>
  until(async () => {
    const events = await world.events(sessionId);
    return (
      events.filter(({ type }) => /^Turn(Completed|Failed|Cancelled)$/.test(type)).length === turns && events
    );
  });

describe('a message to nobody yet', () => {
  it('begins a session, and its turn comes to an answer in four appends of one stream', async () => {
    const accepted = await submit({ address: address() });
    expect(accepted).toMatchObject({
      agentId: 'main',
      version: 3,
      acceptedOffset: ATTEMPT_SPAN,
      joined: false,
    });
    const events = await ended(accepted.sessionId);
    expect(events.map(({ type }) => type)).toEqual([
      'SessionStarted',
      'TurnRequested',
      'ModelCallStarted',
      'ModelCallCompleted',
      'TurnCompleted',
    ]);
  });

  it('is followed in the same session', async () => {
    const target = { address: address() };
    const first = await submit(target);
    const second = await submit(target);
    expect(second.sessionId).toBe(first.sessionId);
    await ended(first.sessionId, 2);
  });
});

describe('frames', () => {
  it('arrive live with the offsets that the log gives them', async () => {
    const { sessionId } = await submit({ address: address() });
    await ended(sessionId);
    const frames = world.watch(sessionId);
    await world.nats.connection.flush();
    world.model.reply = streams('one ', 'two');
    await submit({ sessionId });
    await until(() => frames.some(({ event }) => event === 'done'));
    expect(frames.map(({ event, offset }) => [event, offset - 2 * ATTEMPT_SPAN])).toEqual([
      ['accepted', 0],
      ['text', 1],
      ['text', 2],
      ['usage', 3],
      ['done', 4],
    ]);
    expect(await typesOf(sessionId)).toHaveLength(9);
  });
});
