import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { sessionStream } from '@antiphon/contracts/agent';
import { TOOL_CANCEL_SUBJECT } from '@antiphon/contracts/sandbox';
import { isoTime } from '@antiphon/kernel';
import { systemClock } from '@antiphon/observability';
import {
  WORKSPACE,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { TestProcess } from '@antiphon/agent-features/testing/agent-world';
import {
  ReserveWorld,
  completed,
  holdCommits,
  typesOf,
} from '@antiphon/agent-features/testing/reserve-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

let given: ReserveWorld;
beforeAll(async () => {
  given = await ReserveWorld.open();
  const reaching = { ...echoTool(true, 'reaching'), grants: ['http:example.com'] };
  given.world.responders.tools = [echoTool(true), echoTool(false, 'once'), reaching];
});
beforeEach(() => given.begin());
afterEach(() => given.end());
afterAll(() => given.close());

const start = (): TestProcess =>
  given.start({ config: testConfig({ tools: ['echo', 'once', 'reaching', 'ls', 'write'] }) });

const ECHO = { name: 'echo', input: { n: 1 } };

/** Holds the commit of the model's answer, which asks for a tool. Returns its release. */
const holdAnswer = (...tools: Parameters<typeof asksFor>): (() => Promise<void>) => {
  let release: () => Promise<void> = async () => undefined;
  given.model.reply = async ({ messages }) => {
    if (messages.at(-1)?.role === 'tool') return says('done');
    release = await holdCommits(given.world.pool);
    return asksFor(...tools);
  };
  return () => release();
};
const commitWaits = () => until(async () => (await given.countWaiting()) > 0);
const outcomesOf = (types: readonly string[]) =>
  types.filter((type) => /^ToolCall(Completed|Failed|Unknown|Deferred)$/.test(type));

describe('a tool without capabilities', () => {
  it('runs once, while its request is being committed, and is recorded after it', async () => {
    const release = holdAnswer(ECHO);
    const { sessionId } = await submitTo(start(), { address: newAddress() });
    await commitWaits();
    const asked = await until(() => given.asked.tool[0]);
    expect(asked).toMatchObject({ name: 'echo', epoch: 1, onlyWithoutGrants: true });
    expect(typesOf(await given.world.events(sessionId))).not.toContain('ToolCallRequested');
    await release();
    const events = await given.world.ended(sessionId);
    expect(typesOf(events).slice(3)).toEqual([
      ...['ModelCallCompleted', 'ToolCallRequested', 'ToolCallCompleted'],
      ...['ModelCallStarted', 'ModelCallCompleted', 'TurnCompleted'],
    ]);
    expect(events[5]?.data).toMatchObject({ callId: asked.callId, content: '{"n":1}' });
    expect(given.asked.tool).toHaveLength(1);
  });

  it('runs again if its process dies before the commit, and has one outcome', async () => {
    const release = holdAnswer(ECHO);
    const agent = start();
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    await commitWaits();
    await until(() => given.asked.tool.length === 1);
    given.model.reply = async ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? says('done') : asksFor({ name: 'echo', input: { n: 2 } });
    agent.kill();
    await release();
    await given.world.handleExit(agent);
    start();
    const types = typesOf(await given.world.ended(sessionId));
    expect(types.at(-1)).toBe('TurnCompleted');
    expect(outcomesOf(types)).toEqual(['ToolCallCompleted']);
  });

  it('has its outcome also if another process appends before the request, and is not cancelled', async () => {
    let cancelled = 0;
    const hint = given.world.nats.connection.subscribe(TOOL_CANCEL_SUBJECT, {
      callback: () => void (cancelled += 1),
    });
    const agent = given.start({
      config: testConfig({ tools: ['echo'] }),
      times: { leaseMs: 3_000, pollMs: 3_600_000 },
    });
    let sessionId = '';
    given.model.reply = async ({ messages }) => {
      if (messages.at(-1)?.role === 'tool') return says('done');
      await until(() => sessionId !== '');
      const data = { turnId: randomUUID(), content: 'queued', requestedAt: isoTime(systemClock) };
      const metadata = { correlationId: 'spec', service: 'agent' as const };
      const event = { eventId: randomUUID(), type: 'TurnRequested', schemaVersion: 1, data, metadata };
      given.model.reply = async (request) =>
        request.messages.at(-1)?.role === 'tool' ? says('done') : says('the queued turn');
      await given.world.store.append({
        workspace: WORKSPACE,
        streams: [{ streamId: sessionStream(sessionId), expectedVersion: 'any', events: [event] }],
      });
      return asksFor(ECHO);
    };
    ({ sessionId } = await submitTo(agent, { address: newAddress() }));
    const types = typesOf(await given.world.ended(sessionId, 2));
    expect(types.filter((type) => type === 'TurnCompleted')).toHaveLength(2);
    expect(outcomesOf(types)).toEqual(['ToolCallCompleted']);
    expect(cancelled).toBe(0);
    hint.unsubscribe();
  });

  it('is ended with its turn', async () => {
    given.world.responders.tool = () => new Promise(() => undefined);
    const release = holdAnswer(ECHO);
    const agent = start();
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    await commitWaits();
    await until(() => given.asked.tool.length === 1);
    await release();
    await until(async () => typesOf(await given.world.events(sessionId)).includes('ToolCallRequested'));
    await agent.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' });
    const types = typesOf(await given.world.ended(sessionId));
    expect(types.at(-1)).toBe('TurnCancelled');
    expect(types).not.toContain('ToolCallCompleted');
  });
});

it.each(['reaching', 'once'])(
  'a tool that may reach something outside waits for the commit: %s',
  async (tool) => {
    const release = holdAnswer({ name: tool, input: {} });
    given.world.responders.tool = async ({ input }) => completed(input);
    const { sessionId } = await submitTo(start(), { address: newAddress() });
    await commitWaits();
    expect(given.asked.tool).toEqual([]);
    await release();
    const types = typesOf(await given.world.ended(sessionId));
    expect(outcomesOf(types)).toEqual(['ToolCallCompleted']);
    expect(given.asked.tool).toHaveLength(1);
    expect(given.asked.tool[0]).not.toHaveProperty('onlyWithoutGrants');
  },
);

it.each([
  ['alone', [], true],
  ['next to a change of the same step', [{ name: 'write', input: { path: 'new.txt', content: 'x' } }], false],
] as const)('a tool that reads files %s: before the commit', async (_what, others, isEarly) => {
  const agent = start();
  const { workspaceFiles } = agent.runtime.services;
  const reads: string[] = [];
  const { list } = workspaceFiles;
  workspaceFiles.list = (...args) => {
    reads.push('ls');
    return list.apply(workspaceFiles, args);
  };
  const release = holdAnswer({ name: 'ls', input: {} }, ...others);
  const { sessionId } = await submitTo(agent, { address: newAddress() });
  await commitWaits();
  if (isEarly) await until(() => reads.length === 1);
  else expect(reads).toEqual([]);
  await release();
  const types = typesOf(await given.world.ended(sessionId));
  expect(outcomesOf(types)).toEqual(Array.from({ length: 1 + others.length }, () => 'ToolCallCompleted'));
  expect(reads).toHaveLength(1);
});
