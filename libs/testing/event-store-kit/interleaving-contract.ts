import { beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { type AppendRequest, type EventStore, type RecordedEvent, verifyChain } from '@antiphon/event-store';
import { freshWorkspace, type LogUnderTest, type OpenedLog, newEvent, outcomeOf } from './log-under-test.js';

/**
 * One append of a random run: its streams with expected versions, its key, and the request that it
 * repeats.
 */
interface Step {
  readonly streams: readonly {
    readonly stream: number;
    readonly expected: number | 'any';
    readonly count: number;
  }[];
  readonly key: number | null;
  readonly repeats: number | null;
}

const STREAMS = 4;
const steps = fc.array(
  fc.record({
    streams: fc.uniqueArray(
      fc.record({
        stream: fc.nat({ max: STREAMS - 1 }),
        expected: fc.oneof(fc.nat({ max: 6 }), fc.constant('any' as const)),
        count: fc.integer({ min: 1, max: 3 }),
      }),
      { minLength: 1, maxLength: 3, selector: ({ stream }) => stream },
    ),
    key: fc.option(fc.nat({ max: 3 })),
    repeats: fc.option(fc.nat({ max: 10 })),
  }),
  { minLength: 1, maxLength: 30 },
);

const toRequests = (workspace: string, run: readonly Step[]): AppendRequest[] => {
  const requests: AppendRequest[] = [];
  for (const { streams, key, repeats } of run) {
    const earlier = repeats === null ? undefined : requests[repeats];
    const idempotency =
      key === null
        ? {}
        : { idempotency: { scope: 's/turn.submit', key: `k${key}`, digest: 'd', response: { key } } };
    requests.push(
      earlier ?? {
        workspace,
        ...idempotency,
        streams: streams.map(({ stream, expected, count }) => ({
          streamId: `session-${stream}`,
          expectedVersion: expected,
          events: Array.from({ length: count }, () => newEvent({ nonce: randomUUID() })),
        })),
      },
    );
  }
  return requests;
};

const byStream = (events: readonly RecordedEvent[]): Map<string, RecordedEvent[]> =>
  Map.groupBy(events, ({ streamId }) => streamId);

/**
 * Checks versions, hashes, gapless positions, and that each accepted request is in the log once and
 * as a whole.
 */
const expectConsistent = (
  events: readonly RecordedEvent[],
  requests: readonly AppendRequest[],
  outcomes: readonly string[],
): void => {
  const positions = events.map(({ position }) => position);
  expect(positions).toEqual(positions.map((_, index) => (positions[0] ?? 0) + index));
  for (const stream of byStream(events).values())
    expect(verifyChain(stream)).toMatchObject({ isIntact: true, version: stream.length });
  const written = events.map(({ eventId }) => eventId);
  expect(new Set(written).size).toBe(written.length);
  const accepted = requests.filter((_, index) => outcomes[index] === 'appended');
  expect(
    accepted
      .flatMap(({ streams }) => streams.flatMap((stream) => stream.events.map(({ eventId }) => eventId)))
      .toSorted(),
  ).toEqual(written.toSorted());
  for (const { streams } of accepted) {
    const at = streams.flatMap((stream) => stream.events.map(({ eventId }) => written.indexOf(eventId)));
    expect(at).toEqual(at.map((_, index) => (at[0] ?? 0) + index));
  }
};

export interface InterleavingOptions {
  readonly runs?: number;
}

/** Tests that random concurrent appends leave a consistent log. */
export const interleavingContract = (opened: OpenedLog, { runs = 40 }: InterleavingOptions = {}): void => {
  let log: LogUnderTest;
  beforeAll(() => {
    log = opened();
  });

  const appendAll = async (store: EventStore, requests: readonly AppendRequest[]): Promise<string[]> =>
    Promise.all(requests.map((one) => outcomeOf(store.append(one))));

  describe('random interleavings', () => {
    it('leave a consistent log', async () => {
      await fc.assert(
        fc.asyncProperty(steps, async (run) => {
          const workspace = freshWorkspace();
          const requests = toRequests(workspace, run);
          const before = await log.agent.headPosition();
          const outcomes = await appendAll(log.agent, requests);
          const events = await log.agent.readLog({ after: before, limit: 10_000 });
          const expected = ['appended', 'duplicate', 'joined', 'LOG.VERSION_CONFLICT'];
          expect(outcomes.filter((outcome) => !expected.includes(outcome))).toEqual([]);
          expectConsistent(events, requests, outcomes);
        }),
        { numRuns: runs },
      );
    }, 120_000);
  });
};
