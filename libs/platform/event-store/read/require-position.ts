import { decodeCursor } from '@antiphon/contracts/log';
import { invalid, rejected } from '@antiphon/kernel';

/**
 * Returns the position as of which a read answers: the given one, or the head. Throws
 * `LOG.POSITION_AHEAD` for a position that the log has not reached.
 */
export const requirePosition = (at: number | undefined, head: number): number => {
  if (at === undefined) return head;
  if (at <= head) return at;
  throw rejected('LOG.POSITION_AHEAD', `the log ends at position ${head}, before ${at}`, {
    data: { position: at, head },
  });
};

/** Returns a decoded cursor. Throws for undefined: the list did not issue the cursor. */
export const requireCursor = <T>(decoded: T | undefined, code = 'REQUEST.INVALID'): T => {
  if (decoded !== undefined) return decoded;
  throw invalid(code, 'this cursor was not issued by this list: begin without one');
};

/**
 * Returns the position of a list's cursor; null without a cursor. Throws `code` for one that the
 * list did not issue.
 */
export const positionOfCursor = (cursor: string | undefined, code?: string): number | null =>
  cursor === undefined ? null : requireCursor(decodeCursor(cursor), code);
