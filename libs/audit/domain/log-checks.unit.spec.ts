import { describe, expect, it } from '@jest/globals';
import { cleanSession, findingsOf, place, uuid } from './audit-examples.spec.js';
import type { EventPlace } from './audit-check.js';
import { commandsHappenOnce, positionsAreGapless, versionsAreContiguous } from './log-checks.js';
import type { CommandClaim, CommandInput } from './log-checks.js';

const places = (): EventPlace[] => place(cleanSession()).map((event) => event.place);
const changed = (index: number, change: Partial<EventPlace>): EventPlace[] =>
  places().map((at, i) => (i === index ? { ...at, ...change } : at));

describe('positions-are-gapless', () => {
  it('finds nothing in a complete log, or in one that begins after an archive', () => {
    expect(findingsOf(positionsAreGapless(0), places())).toEqual([]);
    const later = places().map((at) => ({ ...at, position: at.position + 500 }));
    expect(findingsOf(positionsAreGapless(500), later)).toEqual([]);
  });

  it('reports the event after a gap once', () =>
    expect(findingsOf(positionsAreGapless(0), places().toSpliced(4, 1))).toEqual([
      'violation 6 position 6 follows 4',
    ]));
});

describe('versions-are-contiguous', () => {
  it('finds nothing in a complete stream', () =>
    expect(findingsOf(versionsAreContiguous, places())).toEqual([]));

  it('reports the version after a gap', () =>
    expect(findingsOf(versionsAreContiguous, places().toSpliced(4, 1))).toEqual([
      'violation 6 version 6 follows 4',
    ]));

  it('reports an event with a position before its predecessor', () =>
    expect(findingsOf(versionsAreContiguous, changed(4, { position: 2 }))).toEqual([
      'violation 2 position 2 does not follow 4 of the version before',
    ]));
});

describe('commands-happen-once', () => {
  const claim = (n: number, over: Partial<CommandClaim> = {}): CommandInput => ({
    kind: 'claim',
    claim: {
      workspace: 'default',
      scope: 'ws/turn.submit',
      key: `key-${n}`,
      firstPosition: n,
      lastPosition: n + 1,
      turnId: uuid(n),
      sessionId: uuid(50),
      ...over,
    },
  });
  const fact = (n: number, id = uuid(n)): CommandInput => ({
    kind: 'fact',
    fact: {
      type: 'TurnRequested',
      id,
      place: { position: n, workspace: 'default', streamId: 's', streamVersion: n, eventId: uuid(n) },
    },
  });

  it('finds nothing when each command was executed once', () =>
    expect(findingsOf(commandsHappenOnce, [claim(1), fact(1), fact(3), claim(5), fact(5)])).toEqual([]));

  it.each([
    [
      'lost',
      [claim(1), fact(3)],
      'violation 0 the command with key key-1 (ws/turn.submit) is not at positions 1 to 2',
    ],
    [
      'lost at the end',
      [claim(1)],
      'violation 0 the command with key key-1 (ws/turn.submit) is not at positions 1 to 2',
    ],
    [
      'executed with another',
      [claim(1), claim(1, { key: 'other' }), fact(1)],
      `violation 1 TurnRequested ${uuid(1)} executes 2 commands`,
    ],
  ])('names a command that was %s', (_, inputs, finding) =>
    expect(findingsOf(commandsHappenOnce, inputs)).toEqual([finding]),
  );
});
