/** Wall-clock time, injected so that tests do not depend on the machine's clock. */
export interface Clock {
  /** Milliseconds since the epoch, UTC. */
  now(): number;
}

/** Source of new UUIDs, injected so that tests stay deterministic. */
export interface Ids {
  next(): string;
}

/** Returns the time as ISO 8601 in UTC with milliseconds, the form of every time in an event. */
export const isoTime = (clock: Clock): string => new Date(clock.now()).toISOString();
