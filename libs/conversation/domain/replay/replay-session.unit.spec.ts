import { TEXTS, textCause, textOf } from '@antiphon/contracts/causes';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { isDeepStrictEqual } from 'node:util';
import type { SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import fc from 'fast-check';
import { NO_OPEN_CIRCUITS } from '@antiphon/providers-domain/circuit-breaker';
import type { OpenCircuits } from '@antiphon/providers-domain/circuit-breaker';
import { DriverSimulation } from '../turn/driver.simulation.js';
import type { AgentPolicy } from '../turn/step.js';
import { replaySession } from './replay-session.js';
import type { ReplayOverrides, ReplayedEvent } from './replay-session.js';
import type { ReplayNames } from './replay-input.js';

const policies = fc.record<AgentPolicy>({
  provider: fc.constant('first'),
  model: fc.constant('m'),
  fallback: fc.constantFrom(null, { provider: 'second', model: 'n' }, { provider: 'first', model: 'small' }),
  maxIterations: fc.integer({ min: 1, max: 4 }),
  openCircuits: fc.constantFrom<OpenCircuits>(
    NO_OPEN_CIRCUITS,
    NO_OPEN_CIRCUITS,
    new Map([['first', { state: 'open', until: '2026-11-21T12:01:00.000Z' }]]),
    new Map([['second', { state: 'probing', until: '' }]]),
    new Map([
      ['first', { state: 'open', until: 'then' }],
      ['second', { state: 'open', until: 'later' }],
    ]),
  ),
  guarded: fc.constantFrom(new Set<string>(), new Set(['unsafe']), new Set(['safe', 'unsafe'])),
});
const acts = fc.array(fc.constantFrom('drive', 'drive', 'drive', 'drive', 'submit', 'cancel', 'crash'), {
  maxLength: 60,
});
const chance = fc.infiniteStream(fc.nat());

type Act = (typeof acts extends fc.Arbitrary<infer T> ? T : never)[number];

/** Returns the log that a driver, its clients and its crashes produce; it may end anywhere. */
const logOf = (names: readonly Act[], numbers: Iterable<number>, agent: AgentPolicy): SessionEvent[] => {
  const next = numbers[Symbol.iterator]();
  const simulation = new DriverSimulation((bound) => (next.next().value as number) % bound, agent);
  for (const name of names) {
    if (name === 'drive') simulation.drive();
    else if (name === 'submit') simulation.submit('what is it?');
    else if (name === 'cancel') simulation.cancel();
    else simulation.crash();
  }
  return simulation.events;
};

/** Ids and digests as the simulation makes them. */
const namesOf = (events: readonly SessionEvent[]): ReplayNames => ({
  callIdOf: (_, attempt, index) => {
    const answered = events.find(
      (event): event is SessionEventOf<'ModelCallCompleted'> =>
        event.type === 'ModelCallCompleted' && event.data.attempt === attempt,
    );
    return answered?.data.toolCalls[index]?.callId ?? '';
  },
  toolDigestOf: () => 'd',
  isSame: isDeepStrictEqual,
});
const replay = (events: readonly SessionEvent[], rules?: ReplayOverrides): ReplayedEvent[] => [
  ...replaySession(events, namesOf(events), rules),
];
const firstDifference = (replayed: readonly ReplayedEvent[]): number =>
  replayed.findIndex(({ recorded, produced }) => !isDeepStrictEqual(recorded, produced));

describe('replaySession', () => {
  it('reproduces any log that a driver can make, event by event', () =>
    fc.assert(
      fc.property(acts, chance, policies, (names, numbers, agent) => {
        const events = logOf(names, numbers, agent);
        expect(replay(events).map(({ produced }) => produced)).toEqual(events);
      }),
      { numRuns: 500 },
    ));

  it('reproduces a log without recorded policies', () =>
    fc.assert(
      fc.property(acts, chance, policies, (names, numbers, agent) => {
        const events = logOf(names, numbers, {
          ...agent,
          openCircuits: NO_OPEN_CIRCUITS,
          maxIterations: 4,
        }).map((event) => {
          if (event.type !== 'ModelCallStarted') return event;
          const { policy: _, ...data } = event.data;
          return { ...event, data };
        });
        expect(firstDifference(replay(events))).toBe(-1);
      }),
    ));

  it('reports the event whose decision was changed', () =>
    fc.assert(
      fc.property(acts, chance, policies, fc.nat(), (names, numbers, agent, at) => {
        const events = logOf(names, numbers, agent);
        const decisions = events.flatMap((event, index) =>
          ['ToolCallRequested', 'TurnCompleted', 'TurnCancelled'].includes(event.type) ? [index] : [],
        );
        fc.pre(decisions.length > 0);
        const index = decisions[at % decisions.length] as number;
        const other: SessionEvent = {
          type: 'TurnFailed',
          schemaVersion: 2,
          data: { turnId: 't-0', code: 'X.Y', cause: textCause('forged'), failedAt: '' },
        };
        const changed = events.with(index, other);
        expect(firstDifference(replay(changed))).toBe(index);
      }),
    ));

  it('reports the first event that another rule would not produce', () => {
    const chosen = [...'0'.repeat(3)].map(Number);
    const agent = {
      provider: 'first',
      model: 'm',
      fallback: null,
      maxIterations: 4,
      openCircuits: NO_OPEN_CIRCUITS,
      guarded: new Set<string>(),
    };
    // Model replies with two calls each, and their results, up to the limit of the policy.
    const numbers = [...chosen, ...Array.from({ length: 400 }, () => 1)];
    const events = logOf(['submit', ...Array.from({ length: 12 }, () => 'drive' as const)], numbers, agent);
    const rejected = replay(events, { maxIterations: 1 });
    const first = rejected[firstDifference(rejected)];
    expect(first?.recorded.type).toBe('ToolCallRequested');
    expect(first?.produced).toMatchObject({ type: 'TurnFailed', data: { code: 'TURN.MAX_ITERATIONS' } });
  });

  describe('of causes', () => {
    const REWORDED = new Set<SessionEvent['type']>([
      ...(['ModelCallAborted', 'ToolCallFailed', 'ToolCallUnknown', 'TurnFailed'] as const),
      ...(['ApprovalDenied', 'ApprovalExpired', 'ApprovalVoided'] as const),
    ]);
    /** Causes of refused tools and of providers. */
    const REFUSED = [
      ...['file_missing', 'edit_not_made', 'plan_without_evidence', 'tool_input_invalid'],
      ...['provider_answer_broken', 'provider_unreachable', 'provider_refused'],
    ];
    /** Returns an event as it is read from a log from before causes. */
    const toText = (event: SessionEvent): SessionEvent =>
      'cause' in event.data
        ? ({
            ...event,
            data: { ...event.data, cause: textCause(textOf(event.data.cause)) },
          } as SessionEvent)
        : event;
    const reword = (): void => {
      for (const kind of Object.keys(TEXTS) as (keyof typeof TEXTS)[])
        jest.spyOn(TEXTS, kind).mockReturnValue(`${kind} in another wording`);
    };
    afterEach(() => void jest.restoreAllMocks());

    it('records and reproduces the same facts after each text was reworded', () => {
      const seen = new Set<SessionEvent['type']>();
      const kinds = new Set<string>();
      const longActs = fc.array(
        fc.constantFrom(
          ...Array.from({ length: 9 }, () => 'drive' as const),
          'submit' as const,
          'cancel' as const,
          'crash' as const,
        ),
        { minLength: 60, maxLength: 90 },
      );
      const guarded = policies.map((agent) => ({ ...agent, guarded: new Set(['safe', 'unsafe']) }));
      const numbersOf = fc.infiniteStream(fc.nat()).map((stream) => [...stream.take(2_000)]);
      const logs = fc.sample(fc.tuple(longActs, numbersOf, guarded), { numRuns: 300, seed: 1 });
      const recorded = logs.map(([names, numbers, agent]) => logOf(names, numbers, agent));
      reword();
      for (const [at, events] of recorded.entries()) {
        const [names, numbers, agent] = logs[at] as (typeof logs)[number];
        expect(logOf(names, numbers, agent)).toEqual(events);
        expect(firstDifference(replay(events))).toBe(-1);
        for (const event of events) {
          if (!('cause' in event.data)) continue;
          seen.add(event.type);
          kinds.add(event.data.cause.kind);
        }
      }
      expect(seen).toEqual(REWORDED);
      expect([...kinds]).toEqual(expect.arrayContaining(REFUSED));
    });

    it('reproduces a log from before causes', () =>
      fc.assert(
        fc.property(acts, chance, policies, (names, numbers, agent) => {
          const events = logOf(names, numbers, agent).map(toText);
          return firstDifference(replay(events)) === -1;
        }),
      ));

    it('reports a failure of a turn with another cause', () => {
      const cause = { kind: 'max_iterations', limit: 99 } as const;
      const changed = fc.property(acts, chance, policies, (names, numbers, agent) => {
        const events = logOf(names, numbers, agent);
        const at = events.findIndex((event) => event.type === 'TurnFailed');
        fc.pre(at >= 0);
        const event = events[at] as SessionEventOf<'TurnFailed'>;
        return firstDifference(replay(events.with(at, { ...event, data: { ...event.data, cause } }))) === -1;
      });
      expect(fc.check(changed).failed).toBe(true);
    });
  });
});
