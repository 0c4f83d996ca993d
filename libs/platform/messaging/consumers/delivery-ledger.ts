/** What one process remembers about deliveries that JetStream only counts. */
export interface DeliveryLedger {
  /** Notes a try that was no fault of the message. */
  excuse(sequence: number): void;
  /** How many of `deliveries` count against the message. */
  counted(sequence: number, deliveries: number): number;
  /** Later messages of the subject wait until this one is settled; `until`: unless another process has it by then. */
  hold(subject: string, sequence: number, retryAt: number, until: number): void;
  /** For how many ms a message must wait for an earlier one of its subject, 0 if it need not. */
  heldFor(subject: string, sequence: number, now: number): number;
  /** The message is done with. */
  settle(subject: string, sequence: number): void;
}

interface Returned {
  readonly retryAt: number;
  readonly until: number;
}

/** Messages that wait for a retry are few; a bound keeps those that another process settled from adding up. */
const MAX_ENTRIES = 10_000;
/** A message that waits for another is not sent back and forth more often than this. */
const MIN_WAIT_MS = 100;

const bounded = <K, V>(map: Map<K, V>): void => {
  const oldest = map.keys().next();
  if (map.size > MAX_ENTRIES && !oldest.done) map.delete(oldest.value);
};

export const createDeliveryLedger = (): DeliveryLedger => {
  const excused = new Map<number, number>();
  const returned = new Map<string, Map<number, Returned>>();
  return {
    excuse: (sequence) => {
      excused.set(sequence, (excused.get(sequence) ?? 0) + 1);
      bounded(excused);
    },
    counted: (sequence, deliveries) => deliveries - (excused.get(sequence) ?? 0),
    hold: (subject, sequence, retryAt, until) => {
      const waiting = returned.get(subject) ?? new Map<number, Returned>();
      waiting.set(sequence, { retryAt, until });
      returned.set(subject, waiting);
      bounded(returned);
    },
    heldFor: (subject, sequence, now) => {
      const earlier = [...(returned.get(subject) ?? [])].filter(
        ([other, { until }]) => other < sequence && until > now,
      );
      if (earlier.length === 0) return 0;
      return Math.max(MIN_WAIT_MS, ...earlier.map(([, { retryAt }]) => retryAt - now));
    },
    settle: (subject, sequence) => {
      excused.delete(sequence);
      const waiting = returned.get(subject);
      if (waiting?.delete(sequence) && waiting.size === 0) returned.delete(subject);
    },
  };
};
