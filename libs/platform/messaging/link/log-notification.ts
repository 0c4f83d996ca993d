import type { NatsConnection } from '@nats-io/transport-node';
import { LOG_NOTIFICATION_SUBJECT } from '@antiphon/contracts/log';
import type { NatsLink } from './nats-link.js';

/**
 * Time within which appends share one notification, ms: a turn appends four times, in two services.
 */
const PUBLISH_DEBOUNCE_MS = 10;

/**
 * Makes the function that notifies all processes of an append, with the categories of its events. A
 * notification may be lost, so subscribers poll as well.
 */
export const createLogNotifier = (link: NatsLink): ((categories: ReadonlySet<string>) => void) => {
  let timer: NodeJS.Timeout | undefined;
  const appended = new Set<string>();
  const publish = (): void => {
    timer = undefined;
    const categories = [...appended].join(' ');
    appended.clear();
    if (link.isConnected() && !link.connection.isDraining())
      link.connection.publish(LOG_NOTIFICATION_SUBJECT, categories);
  };
  return (categories) => {
    for (const category of categories) appended.add(category);
    timer ??= setTimeout(publish, PUBLISH_DEBOUNCE_MS).unref();
  };
};

/**
 * Time within which notifications wake a subscriber once, ms. Reading the log costs all processes
 * far more than the delay costs a reader. Paths that cannot wait (a context, a stream of frames)
 * read the log directly. Subscribers lag by this and `PUBLISH_DEBOUNCE_MS`, about half of what a
 * projection may lag (docs/adr/0025).
 */
const WAKE_DEBOUNCE_MS = 40;

type Notify = (categories: ReadonlySet<string>) => void;

/** Subscribers of a connection, which share one subscription of NATS. */
interface Subscribers {
  readonly all: Set<Notify>;
  readonly unsubscribe: () => void;
}

/** Subscribers in this process by connection: the server sends each notification to it once. */
const subscribersOf = new WeakMap<NatsConnection, Subscribers>();

const openSubscription = (connection: NatsConnection): Subscribers => {
  const all = new Set<Notify>();
  const subscription = connection.subscribe(LOG_NOTIFICATION_SUBJECT, {
    callback: (error, message) => {
      // Subscribers poll as well, and the link logs the refusal.
      if (error) return;
      const categories = new Set(message.string().split(' ').filter(Boolean));
      for (const notify of all) notify(categories);
    },
  });
  return { all, unsubscribe: () => subscription.unsubscribe() };
};

/** A connection without subscribers is sent nothing: each notification wakes its process. */
const subscribe = (connection: NatsConnection, onNotification: Notify): (() => void) => {
  const subscribers = subscribersOf.get(connection) ?? openSubscription(connection);
  subscribersOf.set(connection, subscribers);
  subscribers.all.add(onNotification);
  return () => {
    if (!subscribers.all.delete(onNotification) || subscribers.all.size > 0) return;
    subscribersOf.delete(connection);
    subscribers.unsubscribe();
  };
};

export interface NotificationOptions {
  /** Time within which several notifications wake once, ms. */
  readonly debounceMs?: number | undefined;
  /** Categories of the events that wake; all by default. */
  readonly categories?: readonly string[];
}

/**
 * Calls `wake` soon after a notification, once for several within `debounceMs`. A notification
 * without categories, of an older version, wakes every subscriber. Returns an unsubscribe function.
 */
export const onLogNotification = (
  link: NatsLink,
  wake: () => void,
  { debounceMs = WAKE_DEBOUNCE_MS, categories }: NotificationOptions = {},
): (() => void) => {
  let timer: NodeJS.Timeout | undefined;
  const fire = (): void => {
    timer = undefined;
    wake();
  };
  const unsubscribe = subscribe(link.connection, (appended) => {
    const isWanted =
      categories === undefined || appended.size === 0 || categories.some((one) => appended.has(one));
    if (isWanted) timer ??= setTimeout(fire, debounceMs);
  });
  return () => {
    clearTimeout(timer);
    unsubscribe();
  };
};
