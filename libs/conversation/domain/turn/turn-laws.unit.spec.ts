import { describe, expect, it } from '@jest/globals';
import { framesOf, initialCursor } from '@antiphon/contracts/agent';
import type { Frame, SessionEvent } from '@antiphon/contracts/agent';
import fc from 'fast-check';
import { NO_OPEN_CIRCUITS } from '@antiphon/providers-domain/circuit-breaker';
import type { OpenCircuits } from '@antiphon/providers-domain/circuit-breaker';
import { buildPrompt } from '../context/build-prompt.js';
import type { ModelMessage } from '@antiphon/providers-domain/model-port';
import { evolveSession } from '../session/evolve-session.js';
import { initialSession } from '../session/session-state.js';
import { DriverSimulation } from './driver.simulation.js';
import type { AgentPolicy } from './step.js';

const policy = fc.record<AgentPolicy>({
  provider: fc.constant('first'),
  model: fc.constant('m'),
  fallback: fc.constantFrom(null, { provider: 'second', model: 'n' }),
  maxIterations: fc.integer({ min: 1, max: 4 }),
  openCircuits: fc.constantFrom<OpenCircuits>(
    NO_OPEN_CIRCUITS,
    NO_OPEN_CIRCUITS,
    new Map([['first', { state: 'open', until: '' }]]),
    new Map([['second', { state: 'probing', until: '' }]]),
  ),
  guarded: fc.constantFrom(new Set<string>(), new Set(['unsafe']), new Set(['safe', 'unsafe'])),
});
const acts = fc.array(fc.constantFrom('drive', 'drive', 'drive', 'drive', 'submit', 'cancel', 'crash'), {
  maxLength: 60,
});
const chance = fc.infiniteStream(fc.nat());

const act = (simulation: DriverSimulation, name: string): void => {
  if (name === 'drive') simulation.drive();
  else if (name === 'submit') simulation.submit('what is it?');
  else if (name === 'cancel') simulation.cancel();
  else simulation.crash();
};

/** Checks a law for many logs of a driver with clients and crashes, and after each append. */
const forEveryLog = (law: (simulation: DriverSimulation) => void, { toTheEnd = false } = {}): void =>
  fc.assert(
    fc.property(acts, chance, policy, (names, numbers, agent) => {
      const next = numbers[Symbol.iterator]();
      const simulation = new DriverSimulation((bound) => (next.next().value as number) % bound, agent);
      for (const name of names) {
        act(simulation, name);
        if (!toTheEnd) law(simulation);
      }
      for (let steps = 0; simulation.drive(); steps++) {
        if (steps > 10_000) throw new Error('a turn does not end');
        if (!toTheEnd) law(simulation);
      }
      law(simulation);
    }),
    { numRuns: 300 },
  );

const idsOf = (
  events: readonly SessionEvent[],
  type: SessionEvent['type'],
  key: 'turnId' | 'callId',
): string[] =>
  events
    .filter((event) => event.type === type)
    .map(({ data }) => (data as Record<string, string>)[key] as string);
const TERMINAL = ['TurnCompleted', 'TurnFailed', 'TurnCancelled'] as const;
const OUTCOMES = ['ToolCallCompleted', 'ToolCallFailed', 'ToolCallUnknown'] as const;

const foldFrames = (events: readonly SessionEvent[]) => {
  const frames: Frame[] = [];
  let cursor = initialCursor;
  for (const event of events) {
    const step = framesOf(cursor, event);
    frames.push(...step.frames);
    cursor = step.cursor;
  }
  return { frames, cursor };
};

describe('every turn', () => {
  it('ends exactly once', () =>
    forEveryLog(
      ({ events }) => {
        const requested = idsOf(events, 'TurnRequested', 'turnId');
        expect(TERMINAL.flatMap((type) => idsOf(events, type, 'turnId')).sort()).toEqual(requested.sort());
      },
      { toTheEnd: true },
    ));

  it('runs after the one before it, in the order accepted', () =>
    forEveryLog(
      ({ events }) => {
        const ends = events.filter(({ type }) => (TERMINAL as readonly string[]).includes(type));
        expect(ends.map(({ data }) => (data as { turnId: string }).turnId)).toEqual(
          idsOf(events, 'TurnRequested', 'turnId'),
        );
      },
      { toTheEnd: true },
    ));

  it('has no event after its end, and starts nothing after its cancel', () =>
    forEveryLog(
      ({ events }) => {
        const over = new Set<string>();
        const cancelled = new Set<string>();
        for (const { type, data } of events) {
          const turnId = (data as { turnId?: string }).turnId ?? '';
          expect(over.has(turnId)).toBe(false);
          if (type === 'ModelCallStarted' || type === 'ToolCallRequested')
            expect(cancelled.has(turnId)).toBe(false);
          if ((TERMINAL as readonly string[]).includes(type)) over.add(turnId);
          if (type === 'TurnCancelRequested') cancelled.add(turnId);
        }
      },
      { toTheEnd: true },
    ));
});

describe('every call of a guarded tool', () => {
  it('is requested only after its approval, and each approval ends once', () =>
    forEveryLog(({ events }) => {
      const asked = new Map<string, string>();
      const granted = new Set<string>();
      const closed = new Set<string>();
      for (const { type, data } of events) {
        if (type === 'ApprovalRequested') {
          expect(asked.has(data.callId)).toBe(false);
          asked.set(data.callId, data.digest);
        }
        if (type === 'ApprovalGranted') {
          expect(asked.get(data.callId)).toBe(data.digest);
          expect(granted.has(data.callId) || closed.has(data.callId)).toBe(false);
          granted.add(data.callId);
        }
        if (type === 'ApprovalDenied' || type === 'ApprovalExpired' || type === 'ApprovalVoided') {
          expect(closed.has(data.callId)).toBe(false);
          expect(type !== 'ApprovalVoided' && granted.has(data.callId)).toBe(false);
          closed.add(data.callId);
        }
        if (type === 'ToolCallRequested' && asked.has(data.callId))
          expect(granted.has(data.callId) && !closed.has(data.callId)).toBe(true);
      }
    }));

  it('has no approval event after the cancel of its turn', () =>
    forEveryLog(({ events }) => {
      const cancelled = new Set<string>();
      for (const { type, data } of events) {
        if (type === 'TurnCancelRequested') cancelled.add(data.turnId);
        if (type.startsWith('Approval'))
          expect(cancelled.has((data as { turnId: string }).turnId)).toBe(false);
      }
    }));
});

describe('every tool call', () => {
  it('has exactly one outcome', () =>
    forEveryLog(
      ({ events }) =>
        expect(OUTCOMES.flatMap((type) => idsOf(events, type, 'callId')).sort()).toEqual(
          idsOf(events, 'ToolCallRequested', 'callId').sort(),
        ),
      { toTheEnd: true },
    ));

  it('is claimed once before it is sent, unless its tool is idempotent', () =>
    forEveryLog(
      ({ events, dispatched }) => {
        const claims = idsOf(events, 'ToolCallClaimed', 'callId');
        const deferred = idsOf(events, 'ToolCallDeferred', 'callId');
        const times = (all: readonly string[], id: string) => all.filter((one) => one === id).length;
        // A further claim follows a try that reached no tool.
        for (const id of claims) expect(times(claims, id)).toBeLessThanOrEqual(times(deferred, id) + 1);
        for (const event of events)
          if (
            event.type === 'ToolCallRequested' &&
            !event.data.idempotent &&
            dispatched.has(event.data.callId)
          )
            expect(claims).toContain(event.data.callId);
      },
      { toTheEnd: true },
    ));

  it('is sent at most once, unless its tool is idempotent', () =>
    forEveryLog(
      ({ events, dispatched }) => {
        for (const event of events)
          if (event.type === 'ToolCallRequested' && !event.data.idempotent)
            expect(dispatched.get(event.data.callId) ?? 0).toBeLessThanOrEqual(1);
      },
      { toTheEnd: true },
    ));
});

describe('every frame', () => {
  it('has an offset above the previous one, which it names', () =>
    forEveryLog(({ events }) => {
      const { frames } = foldFrames(events);
      frames.forEach(({ offset, prev }, index) => {
        expect(prev).toBe(frames[index - 1]?.offset ?? 0);
        expect(offset).toBeGreaterThan(prev);
      });
    }));

  it('belongs to a turn that is accepted once and done once', () =>
    forEveryLog(
      ({ events }) => {
        const turnsOf = (name: string) =>
          foldFrames(events)
            .frames.filter(({ event }) => event === name)
            .map(({ turnId }) => turnId);
        expect(turnsOf('accepted')).toEqual(idsOf(events, 'TurnRequested', 'turnId'));
        expect(turnsOf('done')).toEqual(idsOf(events, 'TurnRequested', 'turnId'));
      },
      { toTheEnd: true },
    ));

  it('counts attempts as the fold of the session does', () =>
    forEveryLog(({ events, state }) => expect(foldFrames(events).cursor.attempt).toBe(state.attempt)));
});

type Role = ModelMessage['role'];
/** Roles that may precede each role. `expectLegal` checks that results follow their own calls. */
const MAY_FOLLOW: Record<Role, readonly (Role | undefined)[]> = {
  user: [undefined, 'assistant'],
  assistant: ['user', 'tool'],
  tool: ['assistant'],
};
const callsOf = (message: ModelMessage | undefined): string[] =>
  message?.role === 'assistant' ? message.toolCalls.map(({ id }) => id) : [];
const resultsOf = (message: ModelMessage | undefined): string[] =>
  message?.role === 'tool' ? message.results.map(({ id }) => id) : [];

/** Expects alternating roles, exactly one result after each call, and unique ids. */
const expectLegal = (messages: readonly ModelMessage[]): void => {
  expect(messages.at(-1)?.role).not.toBe('assistant');
  messages.forEach((message, index) => {
    expect(MAY_FOLLOW[message.role]).toContain(messages[index - 1]?.role);
    expect(resultsOf(messages[index + 1])).toEqual(callsOf(message));
    if (message.role === 'assistant') expect(message.text !== '' || message.toolCalls.length > 0).toBe(true);
  });
  const ids = messages.flatMap(callsOf);
  expect(new Set(ids).size).toBe(ids.length);
};

describe('every request to a model', () => {
  it('is a legal conversation after any history', () =>
    forEveryLog(({ state }) => {
      const { open } = state;
      if (!open?.call) return;
      const { messages } = buildPrompt(state, open, {
        choice: open.call,
        systemPrompt: null,
        remembered: { soul: null, facts: [] },
        tools: [],
        window: 3,
        contextTokens: 600,
      });
      expectLegal(messages);
    }));
});

describe('the fold', () => {
  const anyEvent = fc.record({
    type: fc.constantFrom<SessionEvent['type']>(
      'TurnRequested',
      'TurnCancelRequested',
      'ModelCallStarted',
      'ModelCallAborted',
      'ModelCallCompleted',
      'ToolCallRequested',
      'ToolCallUnknown',
      'TurnCompleted',
      'TurnFailed',
      'TurnCancelled',
    ),
    schemaVersion: fc.constant(1 as const),
    data: fc.record({
      turnId: fc.constantFrom('a', 'b'),
      callId: fc.constantFrom('c', 'd'),
      attempt: fc.integer({ min: 1, max: 5 }),
      content: fc.string(),
      message: fc.string(),
      text: fc.string(),
      thought: fc.constant(''),
      frames: fc.constant([]),
      toolCalls: fc.constant([]),
      usage: fc.constant({ inputTokens: 0, outputTokens: 0, estimated: true }),
      tryNumber: fc.integer({ min: 1, max: 2 }),
      costMicroUsd: fc.constant(null),
    }),
  }) as unknown as fc.Arbitrary<SessionEvent>;

  it('accepts any sequence of events, and counts attempts as the fold of frames does', () =>
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 30 }), (events) => {
        const state = events.reduce(evolveSession({ turns: 2, chars: 100 }), initialSession());
        expect(state.attempt).toBe(foldFrames(events).cursor.attempt);
      }),
    ));
});
