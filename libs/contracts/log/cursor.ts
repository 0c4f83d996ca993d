/** A place in the log as a client keeps it: opaque to them, `position` to us. */
export const encodeCursor = (position: number): string =>
  Buffer.from(`p${position}`, 'utf8').toString('base64url');

/** The position of a cursor that we gave out, or undefined for anything else. */
export const decodeCursor = (cursor: string): number | undefined => {
  const match = /^p(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString('utf8'));
  return match ? Number(match[1]) : undefined;
};
