import type { NatsConnection } from '@nats-io/transport-node';
import { sleep } from '@antiphon/kernel';

/** Subject on which a process announces that it has begun to serve the requests of a service. */
export const startSubject = (service: string): string => `hint.start.${service}`;

/** Subject pattern of the starts of all services. */
export const ALL_STARTS = startSubject('*');

/** Returns the service of a request's subject, `cmd.<service>.<name>`. */
export const serviceOf = (subject: string): string => subject.split('.')[1] ?? '';

type Notify = () => void;

/** Functions to call at the next start of a service, by its name. */
type Waiting = Map<string, Set<Notify>>;

/** One subscription of NATS for each connection that waits for starts. */
const waitingOf = new WeakMap<NatsConnection, Waiting>();

const open = (connection: NatsConnection): Waiting => {
  const waiting: Waiting = new Map();
  waitingOf.set(connection, waiting);
  connection.subscribe(ALL_STARTS, {
    callback: (error, { subject }) => {
      // A caller without this notification has its timeout, and the link logs the refusal.
      if (error) return;
      for (const notify of waiting.get(subject.split('.').at(-1) ?? '') ?? []) notify();
    },
  });
  return waiting;
};

/**
 * Calls `notify` when a process of this service starts. The notification may be lost: it replaces
 * no timeout. Returns an unsubscribe function.
 */
export const onServiceStart = (connection: NatsConnection, service: string, notify: Notify): (() => void) => {
  const waiting = waitingOf.get(connection) ?? open(connection);
  const all = waiting.get(service) ?? new Set<Notify>();
  waiting.set(service, all.add(notify));
  return () => all.delete(notify);
};

/**
 * Resolves when a process of this service starts, and after `limitMs` at the latest. Rejects when
 * `signal` aborts.
 */
export const nextServiceStart = async (
  connection: NatsConnection,
  service: string,
  { limitMs, signal }: { readonly limitMs: number; readonly signal: AbortSignal },
): Promise<void> => {
  const started = new AbortController();
  const unsubscribe = onServiceStart(connection, service, () => started.abort());
  try {
    await sleep(limitMs, AbortSignal.any([signal, started.signal])).catch(() => undefined);
  } finally {
    unsubscribe();
  }
  signal.throwIfAborted();
};
