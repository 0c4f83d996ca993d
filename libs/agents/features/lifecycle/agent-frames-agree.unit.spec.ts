import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { foldActivity, initialActivity, speechOf, stateOf } from '@antiphon/contracts/agent';
import { NO_TURNS, visibleState } from '@antiphon/agents-domain';
import { evolveActivity } from './agent-agents.projection.js';

const TYPES = [
  ...['TurnRequested', 'ModelCallStarted', 'ModelCallCompleted', 'ModelCallAborted', 'ToolCallUnknown'],
  ...['ToolCallCompleted', 'TurnCompleted', 'TurnFailed', 'TurnCancelled'],
];
const ENDS = TYPES.slice(-3);

interface Step {
  readonly type: string;
  readonly turn: number;
  readonly text: string;
  readonly toolCalls: readonly object[];
  readonly firstTextAt: string | undefined;
}

/** Removes events that no session has: of a turn that is not open, and second requests. */
const toHistory = (steps: readonly Step[]) => {
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
      toolCalls: fc.constantFrom([], [{}]),
      firstTextAt: fc.constantFrom(undefined, '2026-11-26T00:00:00.000Z'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let [frames, rows] = [initialActivity, NO_TURNS];
        for (const { type, turn, ...spoken } of toHistory(steps)) {
          const data = { turnId: String(turn), ...spoken };
          frames = foldActivity(frames, { type, turnId: String(turn), speech: speechOf(data) });
          rows = evolveActivity(rows, { type, data });
          expect(stateOf(frames)).toEqual(visibleState('ready', rows));
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
