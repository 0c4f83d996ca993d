import type { NatsConnection } from '@nats-io/transport-node';

/** The part of nats-core's protocol handler that writes what was published; not part of its public interface. */
interface Outbox {
  flushPending(): void;
  readonly outbound: { size(): number };
  readonly pendingLimit: number;
}

const outboxOf = (connection: NatsConnection): Outbox | null => {
  const { protocol } = connection as unknown as { readonly protocol?: Partial<Outbox> };
  const known =
    typeof protocol?.flushPending === 'function' &&
    typeof protocol.outbound?.size === 'function' &&
    typeof protocol.pendingLimit === 'number';
  return known ? (protocol as Outbox) : null;
};

/**
 * Lets everything that is published in one round of the event loop leave in one write to the socket. The library
 * writes after every microtask that publishes, and a write costs more than encoding what it carries (ADR 0135).
 * Answers how to go back to that, for the end of the connection, which must not wait; changes nothing if the library
 * has changed inside.
 */
export const gatherWrites = (connection: NatsConnection): (() => void) => {
  const outbox = outboxOf(connection);
  if (outbox === null) return () => undefined;
  const write = outbox.flushPending.bind(outbox);
  let due = false;
  const later = (): void => {
    due = false;
    write();
  };
  outbox.flushPending = () => {
    // What fills the buffer does not wait.
    if (outbox.outbound.size() >= outbox.pendingLimit) return write();
    if (due) return;
    due = true;
    setImmediate(later);
  };
  return () => {
    outbox.flushPending = write;
    write();
  };
};
