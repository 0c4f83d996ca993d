import type { Msg, NatsConnection } from '@nats-io/transport-node';

/** A request of nats-core that waits for one answer; not part of its public interface. */
interface WaitingRequest {
  readonly timer: { cancel(): void };
  readonly deferred: { resolve(message: Msg): void };
  readonly mux: { cancel(request: WaitingRequest): void };
  resolver(error: Error | null, message: Msg): void;
}

interface Asking {
  request(asked: WaitingRequest): WaitingRequest;
}

const askingOf = (connection: NatsConnection): Asking | null => {
  const { protocol } = connection as unknown as { readonly protocol?: Partial<Asking> };
  return typeof protocol?.request === 'function' ? (protocol as Asking) : null;
};

const isKnown = ({ timer, deferred, mux, resolver }: Partial<WaitingRequest>): boolean =>
  typeof timer?.cancel === 'function' &&
  typeof deferred?.resolve === 'function' &&
  typeof mux?.cancel === 'function' &&
  typeof resolver === 'function';

/**
 * Ends an answered request without an error. The library ends each by cancelling it, with an error that nobody hears of,
 * whose stack is captured all the same (ADR 0142). Requests that fail, and those with several answers, are left to it;
 * so is everything, if the library has changed inside.
 */
export const spareErrors = (connection: NatsConnection): void => {
  const asking = askingOf(connection);
  if (asking === null) return;
  const request = asking.request.bind(asking);
  asking.request = (asked) => {
    if (!isKnown(asked)) return request(asked);
    const fail = asked.resolver.bind(asked);
    asked.resolver = (error, message) => {
      if (error) return fail(error, message);
      asked.timer.cancel();
      asked.deferred.resolve(message);
      asked.mux.cancel(asked);
    };
    return request(asked);
  };
};
