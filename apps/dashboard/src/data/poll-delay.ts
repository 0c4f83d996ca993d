/** Time between two reads, ms. */
export const POLL_MS = 10_000;
/** Maximum time between two reads after failures, ms. */
export const MAX_POLL_MS = 120_000;

/** Returns the delay of the next read after a number of failed ones in a row. */
export const pollDelay = (failures: number): number => Math.min(MAX_POLL_MS, POLL_MS * 2 ** failures);
