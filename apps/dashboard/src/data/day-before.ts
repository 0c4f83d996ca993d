const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

/**
 * Returns the start of the 24 hours before a time; null without a time. It is a whole minute, so
 * that the same read serves every render.
 */
export const startOfDayBefore = (time: string | undefined): string | null =>
  time === undefined
    ? null
    : new Date(Math.floor((new Date(time).getTime() - DAY_MS) / MINUTE_MS) * MINUTE_MS).toISOString();
