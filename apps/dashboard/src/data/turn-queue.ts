import type { LogEvent } from '@antiphon/client';
import type { Turn } from './transcript.js';

/** Returns the turn that runs now: the first open one. Turns after it wait. Null for none. */
export const runningTurn = (turns: readonly Turn[]): Turn | null =>
  turns.find(({ endedAt }) => endedAt === null) ?? null;

/** Returns the turns that a caller has cancelled. A waiting one ends when it is its turn. */
export const cancelledTurns = (events: readonly LogEvent[]): ReadonlySet<string> =>
  new Set(
    events
      .filter(({ type }) => type === 'TurnCancelRequested')
      .map(({ data }) => (data as { readonly turnId: string }).turnId),
  );

/** Returns the turns that wait until the running one ends, in their order, without cancelled ones. */
export const queuedTurns = (turns: readonly Turn[], cancelled: ReadonlySet<string>): readonly Turn[] =>
  turns
    .filter(({ endedAt }) => endedAt === null)
    .slice(1)
    .filter(({ turnId }) => !cancelled.has(turnId));

/** Returns true for a turn that has not begun, and will not or did not. */
const hasNotBegun = ({ items, model, usage }: Turn): boolean =>
  model === null && items.length === 0 && usage.calls === 0;

/** Returns the turns that have begun. One that was cancelled before is not among them. */
export const begunTurns = (turns: readonly Turn[], cancelled: ReadonlySet<string>): readonly Turn[] => {
  const running = runningTurn(turns);
  return turns.filter((turn) => {
    if (turn.endedAt === null) return turn === running && !(cancelled.has(turn.turnId) && hasNotBegun(turn));
    return turn.status !== 'cancelled' || !hasNotBegun(turn);
  });
};
