import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { foldActivity, initialActivity, stateOf } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { evolveActivity, NO_TURNS, visibleState } from '@antiphon/agent-domain';

const TYPES = [
  ...['TurnRequested', 'ModelCallStarted', 'ModelCallCompleted', 'ModelCallAborted', 'ToolCallUnknown'],
  ...['ToolCallCompleted', 'TurnCompleted', 'TurnFailed', 'TurnCancelled'],
];
const ENDS = TYPES.slice(-3);

/** Removes events that no session has: of a turn that is not open, and second requests. */
const toHistory = (steps: readonly { type: string; turn: number; text: string }[]) => {
  const [open, seen] = [new Set<number>(), new Set<number>()];
  return steps.filter(({ type, turn }) => {
    if (type === 'TurnRequested') return !seen.has(turn) && (seen.add(turn), open.add(turn));
    const isOpen = open.has(turn);
    if (ENDS.includes(type)) open.delete(turn);
    return isOpen;
  });
};

describe('the state of an agent', () => {
  it('is the same for frames and for the projection, after every event of any history', () => {
    const step = fc.record({
      type: fc.constantFrom(...TYPES),
      turn: fc.nat({ max: 5 }),
      text: fc.constantFrom('', 'hello'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let [frames, rows] = [initialActivity, NO_TURNS];
        for (const { type, turn, text } of toHistory(steps)) {
          frames = foldActivity(frames, { type, turnId: String(turn), hasText: text !== '' });
          rows = evolveActivity(rows, {
            type,
            data: { turnId: String(turn), text },
          } as unknown as SessionEvent);
          expect(stateOf(frames)).toEqual(visibleState('ready', rows));
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
