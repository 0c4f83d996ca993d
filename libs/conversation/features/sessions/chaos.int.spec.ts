import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { framesOf, initialCursor, isTurnEnd } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { ModelFailure } from '@antiphon/providers-domain';
import type { RecordedEvent } from '@antiphon/event-store';
import { createTestDatabase } from '@antiphon/testing';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';
import type { Reply } from '@antiphon/agent-features/testing/test-model';
import { letTimePass } from '@antiphon/testing/waits';

jest.setTimeout(120_000);

const SESSIONS = 10;
const TURNS = 5;
const DEATHS = 12;
/** Number of events between two deaths, so that each process makes progress. */
const WORK_BETWEEN_DEATHS = 12;
/** Seeded generator of the choices. The timing of the processes is not seeded. */
const SEED = 20_261_121;

let world: AgentWorld;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  world.responders.tools = [echoTool(true, 'safe'), echoTool(false, 'unsafe')];
});
afterAll(() => world.close());

const createChoose = (seed: number) => {
  let state = seed;
  return (bound: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * bound);
  };
};
const choose = createChoose(SEED);
const soon = () => letTimePass(choose(25));

/** A slow model that sometimes fails, and that calls idempotent and other tools. */
const moody: Reply = async (request, sink) => {
  sink.onText('well, ');
  await soon();
  if (request.signal.aborted)
    throw new ModelFailure({ reason: 'cancelled', message: 'cancelled', dispatched: true, retryable: false });
  if (choose(10) === 0)
    throw new ModelFailure({ reason: 'provider_error', message: 'busy', dispatched: true, retryable: true });
  if (choose(3) > 0) return says('well, ');
  return { ...asksFor({ name: 'safe' }, { name: choose(2) ? 'safe' : 'unsafe' }), text: 'well, ' };
};

const start = () => world.process({ config: testConfig({ tools: ['safe', 'unsafe'], maxIterations: 3 }) });

/** Processes, one of which is killed and replaced from time to time. */
const createCrew = () => {
  const crew = [start(), start(), start()];
  const any = (): TestProcess => crew[choose(crew.length)] as TestProcess;
  const die = async (): Promise<void> => {
    const index = choose(crew.length);
    const [gone] = crew.splice(index, 1, start());
    gone?.kill();
    // A supervisor detects some deaths; others show only when their leases expire.
    if (gone && choose(4) > 0) await world.handleExit(gone);
  };
  return { any, die };
};

/** Submits with an idempotency key until a process responds: a killed process does not. */
const persist = async <T>(ask: () => Promise<T>): Promise<T> => {
  for (;;) {
    const answer = await Promise.race([ask(), letTimePass(1_500).then(() => null)]);
    if (answer !== null) return answer;
  }
};

const talk = async (crew: ReturnType<typeof createCrew>): Promise<string> => {
  const target = { address: newAddress() };
  let sessionId = '';
  for (let turn = 0; turn < TURNS; turn++) {
    const idempotencyKey = `${target.address.peer}/${turn}`;
    const accepted = await persist(() => submitTo(crew.any(), target, `turn ${turn}`, { idempotencyKey }));
    sessionId = accepted.sessionId;
    if (choose(4) === 0)
      await persist(() => crew.any().runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' }));
    await soon();
  }
  return sessionId;
};

const count = (
  events: readonly RecordedEvent[],
  type: RegExp | ((type: string) => boolean),
  key: string,
): Map<unknown, number> => {
  const counts = new Map<unknown, number>();
  const matches = (name: string): boolean => (type instanceof RegExp ? type.test(name) : type(name));
  for (const event of events)
    if (matches(event.type)) counts.set(event.data[key], (counts.get(event.data[key]) ?? 0) + 1);
  return counts;
};

const expectLaws = (events: readonly RecordedEvent[]): void => {
  const requested = count(events, /^TurnRequested$/, 'turnId');
  expect(requested.size).toBe(TURNS);
  expect(count(events, isTurnEnd, 'turnId')).toEqual(requested);
  expect(count(events, /^ToolCall(Completed|Failed|Unknown)$/, 'callId')).toEqual(
    count(events, /^ToolCallRequested$/, 'callId'),
  );
  expect(count(events, /^ModelCall(Completed|Aborted)$/, 'attempt')).toEqual(
    count(events, /^ModelCallStarted$/, 'attempt'),
  );
  const epochs = events.flatMap(({ metadata }) => metadata.epoch ?? []);
  expect(epochs).toEqual([...epochs].sort((a, b) => a - b));
  let cursor = initialCursor;
  let last = 0;
  for (const event of events) {
    const framed = framesOf(cursor, event as unknown as SessionEvent);
    cursor = framed.cursor;
    for (const { offset } of framed.frames) {
      expect(offset).toBeGreaterThan(last);
      last = offset;
    }
  }
};

describe('sessions whose processes die repeatedly', () => {
  it('end every accepted turn exactly once', async () => {
    world.model.reply = moody;
    const crew = createCrew();
    const talks = Array.from({ length: SESSIONS }, () => talk(crew));
    let over = false;
    const done = Promise.all(talks).finally(() => (over = true));
    for (let death = 0; death < DEATHS; death++) {
      const from = await world.store.headPosition();
      await until(async () => over || (await world.store.headPosition()) >= from + WORK_BETWEEN_DEATHS);
      await crew.die();
    }
    const sessions = await done;
    for (const sessionId of sessions) expectLaws(await waitUntilOver(sessionId));
    const unsafe = world.responders.asked.tool
      .filter(({ name }) => name === 'unsafe')
      .map(({ callId }) => callId);
    expect(new Set(unsafe).size).toBe(unsafe.length);
  });
});

const waitUntilOver = (sessionId: string): Promise<RecordedEvent[]> =>
  until(async () => {
    const events = await world.events(sessionId);
    const open = count(events, /^TurnRequested$/, 'turnId').size - count(events, isTurnEnd, 'turnId').size;
    return open === 0 && events;
  }, 60_000);
