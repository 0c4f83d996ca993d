import type { NatsConnection } from '@nats-io/transport-node';
import { LOG_NOTIFICATION_SUBJECT } from '@antiphon/contracts/log';
import type { NatsLink } from './nats-link.js';

/**
 * Time within which appends share one notification, ms: a turn appends four times, in two services.
 */
const PUBLISH_DEBOUNCE_MS = 10;

/**
 * Makes the function that notifies all processes of an append. A notification may be lost, so
 * subscribers poll as well.
 */
export const createLogNotifier = (link: NatsLink): (() => void) => {
  let timer: NodeJS.Timeout | undefined;
  const publish = (): void => {
    timer = undefined;
    if (link.isConnected() && !link.connection.isDraining())
      link.connection.publish(LOG_NOTIFICATION_SUBJECT);
  };
  return () => void (timer ??= setTimeout(publish, PUBLISH_DEBOUNCE_MS).unref());
};

/**
 * Time within which notifications wake a subscriber once, ms. Reading the log costs all processes
 * far more than the delay costs a reader. Paths that cannot wait (a context, a stream of frames)
 * read the log directly. Subscribers lag by this and `PUBLISH_DEBOUNCE_MS`, about half of what a
 * projection may lag (docs/adr/0025).
 */
const WAKE_DEBOUNCE_MS = 40;

/** Subscribers in this process by connection: the server sends each notification to it once. */
const subscribersOf = new WeakMap<NatsConnection, Set<() => void>>();

const subscribe = (connection: NatsConnection, onNotification: () => void): (() => void) => {
  const known = subscribersOf.get(connection);
  const subscribers = known ?? new Set<() => void>();
  subscribers.add(onNotification);
  if (!known) {
    subscribersOf.set(connection, subscribers);
    connection.subscribe(LOG_NOTIFICATION_SUBJECT, {
      callback: () => subscribers.forEach((notify) => notify()),
    });
  }
  return () => void subscribers.delete(onNotification);
};

/**
 * Calls `wake` soon after a notification, once for several within `debounceMs`. Returns an
 * unsubscribe function.
 */
export const onLogNotification = (
  link: NatsLink,
  wake: () => void,
  debounceMs = WAKE_DEBOUNCE_MS,
): (() => void) => {
  let timer: NodeJS.Timeout | undefined;
  const fire = (): void => {
    timer = undefined;
    wake();
  };
  const unsubscribe = subscribe(link.connection, () => void (timer ??= setTimeout(fire, debounceMs)));
  return () => {
    clearTimeout(timer);
    unsubscribe();
  };
};
