import { describe, expect, it } from '@jest/globals';
import type { LogEvent } from '@antiphon/client';
import { foldHistory } from '@antiphon/contracts/session-fold';
import { HistoryParts } from './history-parts.js';
import { foldPart, partOfEvents, SCRUBBED_TURNS, type HistoryPart } from './session-scrub.js';

const at = '2026-11-22T10:00:00.000Z';
const idOf = (turn: number): string => `0199aa00-0000-7000-8000-${String(turn).padStart(12, '0')}`;

/** Creates a session of turns with three events each, every tenth position of the log. */
const createEvents = (turns: number): LogEvent[] =>
  Array.from({ length: turns }, (_, turn) =>
    [
      ['TurnRequested', { content: `question ${turn}`, requestedAt: at }] as const,
      ['ModelCallStarted', {}] as const,
      ['TurnCompleted', { completedAt: at }] as const,
    ].map(([type, data]) => ({ type, data: { turnId: idOf(turn), ...data } })),
  )
    .flat()
    .map((event, index) => ({
      ...event,
      ...{ streamVersion: index + 1, position: (index + 1) * 10, recordedAt: at },
    })) as unknown as LogEvent[];

const EVENTS = createEvents(40);
const WHOLE: HistoryPart = {
  ...{ from: 0, position: 1_200, snapshot: { turns: [] }, deleted: [{ turnId: idOf(7), part: 'message' }] },
  events: EVENTS.map(({ streamVersion, position, recordedAt, type, data }) => ({
    ...{ version: streamVersion, position, recordedAt },
    event: { type, schemaVersion: 1, data: data as HistoryPart['events'][number]['event']['data'] },
  })),
};

type Part = HistoryPart & { readonly head: number };

describe('a session while its position is dragged', () => {
  it('shows at each position the last turns that the fold of the server has there', () => {
    for (let position = 1; position <= 1_210; position++) {
      const part = partOfEvents(EVENTS, WHOLE.deleted, position);
      const shown = part === null ? [] : foldPart(part, position);
      expect(shown).toEqual(foldHistory(WHOLE, position).slice(-SCRUBBED_TURNS));
    }
  });

  it('folds no events whose turns begin before the loaded ones', () => {
    const loaded = EVENTS.slice(50);
    expect(partOfEvents(loaded, [], 520)).toBeNull();
    expect(partOfEvents(loaded, [], 700)).not.toBeNull();
  });

  it('has one request at a time, and none for positions that it has', async () => {
    const asked: number[] = [];
    const answers: (() => void)[] = [];
    const parts = new HistoryParts<Part>(
      (from) =>
        new Promise((resolve) => {
          asked.push(from);
          answers.push(() => resolve({ ...WHOLE, from, position: from + 4_000, head: 30_000 }));
        }),
      () => undefined,
    );
    for (let position = 10_000; position < 20_000; position += 10) parts.find(position);
    expect(asked).toEqual([9_000]);
    answers[0]?.();
    await new Promise(setImmediate);
    // The next request is for the newest position.
    expect(asked).toEqual([9_000, 17_990]);
    answers[1]?.();
    await new Promise(setImmediate);
    expect(parts.find(19_990)).not.toBeNull();
    expect(asked).toHaveLength(2);
    // Near its end the next part is read in the direction of the drag, and begins there.
    expect(parts.find(21_000)).not.toBeNull();
    expect(asked).toEqual([9_000, 17_990, 21_990]);
  });

  /** Drags to a position as the page does: it looks for the position again after each part. */
  const drag = async (position: number, head: number, mostPositions: number) => {
    const asked: number[] = [];
    const parts = new HistoryParts<Part>(
      (from) => {
        asked.push(from);
        return Promise.resolve({ ...WHOLE, from, position: Math.min(head, from + mostPositions), head });
      },
      () => void (asked.length < 20 && parts.find(position)),
    );
    parts.find(position);
    for (let round = 0; round < 40; round++) await new Promise(setImmediate);
    return { asked, found: parts.find(position) };
  };

  it('reads nothing again while it rests near the end of the log', async () => {
    expect((await drag(9_900, 10_000, 10_000)).asked).toEqual([8_900]);
  });

  it('reads on from the end of a page that ends before the position', async () => {
    const { asked, found } = await drag(5_000, 10_000, 400);
    expect(asked.slice(0, 3)).toEqual([4_000, 4_400, 4_800]);
    expect(asked.length).toBeLessThan(10);
    expect(found).toMatchObject({ from: 4_800, position: 5_200 });
  });
});
