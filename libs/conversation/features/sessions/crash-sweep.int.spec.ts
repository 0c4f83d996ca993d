import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { framesOf, initialCursor, isTurnEnd } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { TURN_FAILPOINTS } from '@antiphon/kernel';
import type { TurnFailpoint } from '@antiphon/kernel';
import { createTestDatabase } from '@antiphon/testing';
import { createAgentWorld, newAddress, submitTo } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { asksFor, streams } from '@antiphon/agent-features/testing/test-model';
import type { Reply } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

let world: AgentWorld;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
});
beforeEach(() => {
  for (const asked of Object.values(world.responders.asked)) asked.length = 0;
  world.model.reply = oneTool;
});
afterEach(() => world.stopAll());
afterAll(() => world.close());

const oneTool: Reply = (request, sink, call) =>
  request.messages.at(-1)?.role === 'tool'
    ? streams('it is ', 'done')(request, sink, call)
    : Promise.resolve(asksFor({ name: 'echo', input: { a: 1 } }));

/** Starts a process that dies when it passes a failpoint for the nth time. */
const killableAt = (point: TurnFailpoint, nth: number): { process: TestProcess; died: Promise<void> } => {
  let passes = 0;
  let dead: () => void = () => undefined;
  const died = new Promise<void>((resolve) => (dead = resolve));
  const process: TestProcess = world.process({
    failpoint: async (name) => {
      if (name !== point || ++passes < nth) return;
      process.kill();
      dead();
      await new Promise(() => undefined);
    },
  });
  return { process, died };
};

const countOf = (events: readonly { type: string }[], type: string | RegExp): number =>
  events.filter((event) => (typeof type === 'string' ? event.type === type : type.test(event.type))).length;

const expectWhole = (events: Awaited<ReturnType<AgentWorld['events']>>): void => {
  expect(events.filter(({ type }) => isTurnEnd(type)).length).toBe(1);
  expect(events.at(-1)?.type).toBe('TurnCompleted');
  expect(countOf(events, 'ToolCallRequested')).toBe(countOf(events, /^ToolCall(Completed|Failed|Unknown)$/));
  expect(countOf(events, 'ModelCallStarted')).toBe(countOf(events, /^ModelCall(Completed|Aborted)$/));
  let cursor = initialCursor;
  const frames = events.flatMap((event) => {
    const framed = framesOf(cursor, event as unknown as SessionEvent);
    cursor = framed.cursor;
    return framed.frames;
  });
  expect(frames.filter(({ event }) => event === 'done')).toHaveLength(1);
  expect(frames.filter(({ event }) => event === 'accepted')).toHaveLength(1);
};

/** Failpoint before the append: no turn is accepted yet, so none is left to finish. */
const BEFORE_ACCEPTED: TurnFailpoint = 'agent.turn.claimed';
/** Failpoint of an outcome that does not fit (`oversized-outcome.int.spec.ts`): its turn fails. */
const OVERSIZED: TurnFailpoint = 'agent.turn.oversized';

describe.each(TURN_FAILPOINTS.filter((name) => name !== BEFORE_ACCEPTED && name !== OVERSIZED))(
  'a driver that dies at %s',
  (point) => {
    it.each([1, 2])('at pass %d is followed by a driver that finishes the turn', async (nth) => {
      world.responders.tools = [echoTool(true)];
      const { process, died } = killableAt(point, nth);
      const submitted = submitTo(process, { address: newAddress() });
      // Points that a turn passes only once cannot kill a second driver.
      const first = await Promise.race([
        died.then(() => 'died'),
        submitted.then(({ sessionId }) => world.ended(sessionId)),
      ]);
      if (first === 'died') {
        await world.handleExit(process);
        world.process();
      }
      const sessionId = await sessionOf(submitted);
      expectWhole(await world.ended(sessionId));
      // Both attempts are in the ledger, each with its own reservation.
      const reserved = world.responders.asked.reserve.map(({ reservationId }) => reservationId);
      expect(new Set(world.responders.asked.reserve.map(({ attempt }) => attempt)).size).toBe(
        new Set(reserved).size,
      );
    });

    it('does not repeat a tool that may have run', async () => {
      world.responders.tools = [echoTool(false)];
      const { process, died } = killableAt(point, 1);
      const submitted = submitTo(process, { address: newAddress() });
      await died;
      await world.handleExit(process);
      world.process();
      const events = await world.ended(await sessionOf(submitted));
      expectWhole(events);
      // A call that was not claimed has reached no tool: the next driver makes it.
      const claimedOnly = point === 'agent.tool.claimed' || point === 'agent.tool.dispatched';
      const lost = claimedOnly || point === 'agent.tool.answered';
      expect(countOf(events, lost ? 'ToolCallUnknown' : 'ToolCallCompleted')).toBe(1);
      const calls = world.responders.asked.tool.map(({ callId }) => callId);
      expect(calls).toHaveLength(claimedOnly ? 0 : 1);
    });
  },
);

/** Finds the session of a client whose process died before it responded. */
const sessionOf = async (submitted: Promise<{ sessionId: string }>): Promise<string> => {
  const newest = world.store
    .headPosition()
    .then(async () =>
      (await world.store.readLog({ after: 0, limit: 100_000, categories: ['session'] })).findLast(
        ({ type }) => type === 'SessionStarted',
      ),
    )
    .then((event) => event?.data['sessionId'] as string);
  const answered = await Promise.race([submitted.then(({ sessionId }) => sessionId), newest]);
  return answered;
};

describe('a process that dies before it accepts a turn', () => {
  it('leaves no turn in the log', async () => {
    const { process, died } = killableAt(BEFORE_ACCEPTED, 1);
    const head = await world.store.headPosition();
    void submitTo(process, { address: newAddress() });
    await died;
    expect(await world.store.headPosition()).toBe(head);
  });
});
