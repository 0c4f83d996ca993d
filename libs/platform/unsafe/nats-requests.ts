import type { NatsConnection } from '@nats-io/transport-node';
import type { Logger } from '@antiphon/observability';

/** A request of nats-core that waits for one reply. */
interface PendingRequest {
  readonly timer?: { cancel(): void };
  readonly mux: { cancel(request: PendingRequest): void };
  readonly deferred: { resolve(message: unknown): void };
}

interface RequestClass {
  resolver(this: PendingRequest, error: Error | null, message: unknown): void;
}

/** The part of nats-core that registers requests. */
interface Requests {
  add(request: object): void;
}

const requestsOf = (connection: NatsConnection): Requests | null => {
  const { protocol } = connection as unknown as {
    readonly protocol?: { readonly muxSubscriptions?: Partial<Requests> };
  };
  const requests = protocol?.muxSubscriptions;
  return typeof requests?.add === 'function' ? (requests as Requests) : null;
};

const isKnown = (request: object): request is PendingRequest & RequestClass => {
  const { mux, deferred, resolver } = request as Partial<PendingRequest & RequestClass>;
  return (
    typeof mux?.cancel === 'function' &&
    typeof deferred?.resolve === 'function' &&
    typeof resolver === 'function'
  );
};

const patched = new WeakSet<object>();

const patch = (requestClass: RequestClass): void => {
  if (patched.has(requestClass)) return;
  patched.add(requestClass);
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called with the request as `this`
  const { resolver } = requestClass;
  requestClass.resolver = function (error, message) {
    if (error) return resolver.call(this, error, message);
    this.timer?.cancel();
    this.mux.cancel(this);
    this.deferred.resolve(message);
  };
};

/**
 * Makes no error for a request that was answered. The library cancels each such request with a new
 * error, whose stack takes a quarter of the request's processor time. Where its internals have
 * changed, this logs a warning and has no effect.
 */
export const avoidRequestErrors = (connection: NatsConnection, logger: Logger): void => {
  const requests = requestsOf(connection);
  const warn = (internals: string): void =>
    logger.warn({ library: '@nats-io/nats-core', internals }, 'library patch inactive');
  if (requests === null) {
    warn('protocol.muxSubscriptions');
    return;
  }
  const add = requests.add.bind(requests);
  requests.add = (request) => {
    // The class is not exported, so the first request for one reply shows it.
    if (isKnown(request)) {
      patch(Object.getPrototypeOf(request) as RequestClass);
      requests.add = add;
    } else if ('deferred' in request) {
      warn('RequestOne');
      requests.add = add;
    }
    add(request);
  };
};
