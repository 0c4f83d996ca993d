/** Returns an opaque cursor for a position of the log and the epoch of that log. */
export const encodeCursor = (position: number, epoch?: number): string =>
  Buffer.from(epoch === undefined ? `p${position}` : `p${position}e${epoch}`, 'utf8').toString('base64url');

const parse = (cursor: string) =>
  /^p(\d{1,15})(?:e(\d{1,15}))?$/.exec(Buffer.from(cursor, 'base64url').toString('utf8'));

/** Returns the position of a cursor from `encodeCursor`, or undefined for any other text. */
export const decodeCursor = (cursor: string): number | undefined => {
  const match = parse(cursor);
  return match ? Number(match[1]) : undefined;
};

/**
 * Returns the epoch of the log that a cursor belongs to, or undefined where the cursor has none.
 */
export const epochOfCursor = (cursor: string): number | undefined => {
  const epoch = parse(cursor)?.[2];
  return epoch === undefined ? undefined : Number(epoch);
};
