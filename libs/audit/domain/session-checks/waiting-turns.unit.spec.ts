import { describe, expect, it } from '@jest/globals';
import type { SessionEvent } from '@antiphon/contracts/agent';
import {
  SECOND,
  TURN,
  callAborted,
  callStarted,
  place,
  sessionStarted,
  turnCompleted,
  turnRequested,
} from '../audit-examples.spec.js';
import { turnsAreTakenUp } from './waiting-turns.js';

const LONG_AGO = '2026-11-27T10:00:00.000Z';
const DEADLINE = '2026-11-27T12:00:00.000Z';
const SOON = '2026-11-27T12:05:00.000Z';

/** Runs the check over events that were all recorded at this time. */
const runAt = (recordedAt: string, ...events: SessionEvent[]) => {
  const check = turnsAreTakenUp(DEADLINE).start();
  const placed = place([sessionStarted(), ...events]);
  return [...placed.flatMap((event) => check.see({ ...event, recordedAt })), ...check.end()];
};
const run = (...events: SessionEvent[]) => runAt(LONG_AGO, ...events);
const requested = turnRequested;
const blocked = (until: string | null, turnId = TURN): SessionEvent => ({
  ...{ type: 'TurnBlocked', schemaVersion: 1 },
  data: {
    ...{ turnId, code: until === null ? 'AGENT.PAUSED' : 'AGENT.ERROR', until, blockedAt: LONG_AGO },
    cause: { kind: 'text', text: 'because' },
  },
});

describe('turns-are-taken-up', () => {
  it.each<[string, SessionEvent[]]>([
    ['no process has taken up', [requested()]],
    ['waits past the time of its next try', [requested(), blocked(LONG_AGO)]],
    [
      'opened long ago, behind another one',
      [requested(), requested(SECOND), callStarted(1), turnCompleted()],
    ],
  ])('reports a turn that %s', (_name, events) =>
    expect(run(...events)).toMatchObject([
      { kind: 'violation', message: expect.stringContaining('no process has taken it up') },
    ]),
  );

  it.each<[string, SessionEvent[]]>([
    ['waits for a person', [requested(), blocked(null)]],
    ['is tried later', [requested(), blocked(SOON)]],
    ['runs', [requested(), callStarted(1)]],
    ['runs after a wait', [requested(), blocked(LONG_AGO), callStarted(1)]],
    ['is between two tries', [requested(), callStarted(1), callAborted(1)]],
    ['waits behind one that runs', [requested(), callStarted(1), requested(SECOND)]],
    ['has ended', [requested(), callStarted(1), turnCompleted()]],
  ])('accepts a turn that %s', (_name, events) => expect(run(...events)).toEqual([]));

  it('accepts a turn that was accepted within ten minutes', () =>
    expect(runAt(SOON, requested())).toEqual([]));

  it('counts accepted turns', () => {
    const check = turnsAreTakenUp(DEADLINE).start();
    for (const event of place([turnRequested(), turnCompleted()])) check.see(event);
    expect(check.count()).toBe(1);
  });
});
