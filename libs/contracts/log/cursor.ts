/** A place in the log as a client keeps it: opaque to them, `position` to us, and the epoch of the log that it is of. */
export const encodeCursor = (position: number, epoch?: number): string =>
  Buffer.from(epoch === undefined ? `p${position}` : `p${position}e${epoch}`, 'utf8').toString('base64url');

const read = (cursor: string) =>
  /^p(\d{1,15})(?:e(\d{1,15}))?$/.exec(Buffer.from(cursor, 'base64url').toString('utf8'));

/** The position of a cursor that we gave out, or undefined for anything else. */
export const decodeCursor = (cursor: string): number | undefined => {
  const match = read(cursor);
  return match ? Number(match[1]) : undefined;
};

/** The epoch of the log that a cursor is of; undefined where it does not say. */
export const epochOfCursor = (cursor: string): number | undefined => {
  const epoch = read(cursor)?.[2];
  return epoch === undefined ? undefined : Number(epoch);
};
