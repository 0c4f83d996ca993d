import { describe, expect, it } from '@jest/globals';
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
          schemaVersion: 1,
          data: { turnId: 't-0', code: 'X.Y', message: 'forged', failedAt: '' },
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

  describe('with texts of failures that were reworded since', () => {
    type Failed = SessionEventOf<'TurnFailed'>;
    const isDecided = (event: SessionEvent): event is Failed =>
      event.type === 'TurnFailed' && event.data.cause !== undefined;
    const failures = (change: (data: Failed['data']) => Failed['data']) =>
      fc.property(acts, chance, policies, (names, numbers, agent) => {
        const events = logOf(names, numbers, agent);
        const at = events.findIndex(isDecided);
        fc.pre(at >= 0);
        const event = events[at] as Failed;
        const changed = events.with(at, { ...event, data: change(event.data) });
        return firstDifference(replay(changed)) === -1;
      });

    it('reproduces a failure by its cause, in any wording', () =>
      fc.assert(failures((data) => ({ ...data, message: 'worded in another way' }))));

    it('reproduces a failure from before causes were recorded', () =>
      fc.assert(failures(({ cause: _, ...data }) => data)));

    it('reports a failure with another cause', () => {
      const other = { kind: 'max_iterations', limit: 99 } as const;
      const details = fc.check(failures((data) => ({ ...data, cause: other })));
      expect(details.failed).toBe(true);
    });
  });
});
