import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { createAgentWorld, newAddress, submitTo } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { asksFor, says, streams, USAGE } from '@antiphon/agent-features/testing/test-model';
import type { Reply } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(60_000);

let world: AgentWorld;
let agent: TestProcess;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  world.responders.tools = [echoTool(true)];
  agent = world.process();
});
beforeEach(() => {
  world.model.requests.length = 0;
});
afterAll(() => world.close());

/** Runs one turn to its end and returns its events. */
const turn = async (reply: Reply, process = agent) => {
  world.model.reply = reply;
  const { sessionId } = await submitTo(process, { address: newAddress() });
  return world.ended(sessionId);
};
type Events = Awaited<ReturnType<typeof turn>>;
const typesOf = (events: Events): string[] => events.map(({ type }) => type);
const failureOf = (events: Events) => events.find(({ type }) => type === 'TurnFailed')?.data;

/** Thinks in the given pieces, and answers nothing. */
const thinks =
  (...pieces: string[]): Reply =>
  async (_request, sink) => {
    for (const piece of pieces) {
      sink.onThought(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { ...says(''), thought: pieces.join('') };
  };
const SIZES = [700_000, 900_000, 1_100_000, 3_000_000];
const pieces = Array.from({ length: 48 }, () => 'x'.repeat(65_536));

/** Checks that the agent takes the next turn, and never was in the state `error`. */
const expectAble = async (): Promise<void> => {
  expect(typesOf(await turn(streams('fine'))).at(-1)).toBe('TurnCompleted');
  const log = await world.store.readLog({ after: 0, limit: 10_000, categories: ['agent'] });
  expect(log.filter(({ type }) => type === 'AgentFailed')).toEqual([]);
};

describe('an answer that is larger than its event may be', () => {
  // @shows U47
  it.each([
    ...SIZES.map((size) => [`one text of ${size} characters`, streams('x'.repeat(size))] as const),
    ...SIZES.map((size) => [`one thought of ${size} characters`, thinks('x'.repeat(size))] as const),
    ['one text of 1,100,000 characters after others', streams('a', 'b', 'x'.repeat(1_100_000))] as const,
    ['one text of 400,000 Chinese characters', streams('字'.repeat(400_000))] as const,
    ['one text of 400,000 control characters', streams('\u0001'.repeat(400_000))] as const,
    ['one text of 400,000 emoji', streams('😀'.repeat(400_000))] as const,
    ['3 MB of text in pieces of 64 KiB', streams(...pieces)] as const,
    ['3 MB of thought in pieces of 64 KiB', thinks(...pieces)] as const,
  ])('fails its turn alone: %s', async (name, reply) => {
    const events = await turn(reply);
    expect(world.model.requests).toHaveLength(1);
    if (name.includes('700000')) expect(typesOf(events).at(-1)).toBe('TurnCompleted');
    else expect(failureOf(events)).toMatchObject({ code: 'PROVIDER.PROTOCOL' });
    await expectAble();
  });

  // @shows U47
  it.each([
    ['arguments of 1,100,000 characters', 'x'.repeat(1_100_000), 'tool_input_too_long'],
    ['Chinese arguments after 790,000 characters of text', '字'.repeat(99_000), 'answer_not_storable'],
  ])('fails its turn alone: %s', async (name, text, kind) => {
    const said = name.startsWith('Chinese') ? 'x'.repeat(790_000) : '';
    const events = await turn(async (_request, sink) => {
      if (said !== '') sink.onText(said);
      return { ...asksFor({ name: 'echo', input: { text } }), text: said };
    });
    expect(world.model.requests).toHaveLength(1);
    expect(failureOf(events)).toMatchObject({ code: 'PROVIDER.PROTOCOL', cause: { kind } });
    const aborted = events.find(({ type }) => type === 'ModelCallAborted');
    expect(aborted?.data).toMatchObject({ text: said, usage: USAGE });
    await expectAble();
  });
});

describe('a result of a tool that is larger than its event may be', () => {
  it.each([
    ['control characters before others', '\u0001'.repeat(100_000) + 'x'.repeat(430_000)],
    ['Chinese characters', '字'.repeat(345_000)],
  ])('is clipped, and the turn continues: %s', async (_name, content) => {
    world.responders.tool = async () => ({
      ...{ outcome: 'completed', content, isError: false, moduleDigest: 'digest', durationMs: 1 },
    });
    const events = await turn((request, sink, call) =>
      request.messages.at(-1)?.role === 'tool'
        ? streams('read')(request, sink, call)
        : Promise.resolve(asksFor({ name: 'echo' })),
    );
    const completed = events.find(({ type }) => type === 'ToolCallCompleted');
    expect(completed?.data['content']).toContain('[clipped: ');
    expect(typesOf(events).at(-1)).toBe('TurnCompleted');
  });
});

it('a process that ends before it records the failure is followed by one that ends the turn', async () => {
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const killed = world.process({
    failpoint: async (name) => {
      if (name !== 'agent.turn.oversized') return;
      killed.kill();
      end();
      await new Promise(() => undefined);
    },
  });
  const running = turn(async (_request, sink) => {
    sink.onText('x'.repeat(790_000));
    return { ...asksFor({ name: 'echo', input: { text: '字'.repeat(99_000) } }), text: 'x'.repeat(790_000) };
  }, killed);
  await ended;
  await world.handleExit(killed);
  const events = await running;
  expect(failureOf(events)).toMatchObject({ code: 'PROVIDER.PROTOCOL' });
  expect(world.model.requests).toHaveLength(2);
});
