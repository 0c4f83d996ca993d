/** Wall-clock time, injected so that tests and periods do not depend on the machine's. */
export interface Clock {
  /** Milliseconds since the epoch, UTC. */
  now(): number;
}

/** Fresh identifiers (UUIDs), injected so that deciders and tests stay deterministic. */
export interface Ids {
  next(): string;
}

/** ISO 8601 in UTC with milliseconds: the form of every time in an event. */
export const isoTime = (clock: Clock): string => new Date(clock.now()).toISOString();
