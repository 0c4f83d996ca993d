import type { NatsConnection } from '@nats-io/transport-node';
import { LOG_NOTIFICATION_SUBJECT } from '@antiphon/contracts/log';
import type { NatsLink } from './nats-link.js';

/** Appends within this time, in ms, are told of once: a turn appends four times, in two services. */
const TELL_MS = 10;

/** Makes the function that wakes whoever tails the log. A hint may be lost: tailing polls as well. */
export const createLogNotifier = (link: NatsLink): (() => void) => {
  let timer: NodeJS.Timeout | undefined;
  const tell = (): void => {
    timer = undefined;
    if (link.isConnected() && !link.connection.isDraining())
      link.connection.publish(LOG_NOTIFICATION_SUBJECT);
  };
  return () => void (timer ??= setTimeout(tell, TELL_MS).unref());
};

/**
 * Hints that come within this time, in ms, wake a follower once. A look at the log costs all processes far more than the
 * wait costs a reader: whoever cannot wait (a context, a stream of frames) reads the log itself. Followers lag by this
 * and `TELL_MS`, about half of what a projection may lag (docs/adr/0025).
 */
const GATHER_MS = 40;

/** Everybody in this process who follows the log over a connection: the server sends each hint once to it. */
const followersOf = new WeakMap<NatsConnection, Set<() => void>>();

const follow = (connection: NatsConnection, onHint: () => void): (() => void) => {
  const known = followersOf.get(connection);
  const followers = known ?? new Set<() => void>();
  followers.add(onHint);
  if (!known) {
    followersOf.set(connection, followers);
    connection.subscribe(LOG_NOTIFICATION_SUBJECT, { callback: () => followers.forEach((tell) => tell()) });
  }
  return () => void followers.delete(onHint);
};

/** Calls `wake` soon after each hint, once for those that come together, until the answered function is called. */
export const onLogNotification = (link: NatsLink, wake: () => void): (() => void) => {
  let timer: NodeJS.Timeout | undefined;
  const fire = (): void => {
    timer = undefined;
    wake();
  };
  const unfollow = follow(link.connection, () => void (timer ??= setTimeout(fire, GATHER_MS)));
  return () => {
    clearTimeout(timer);
    unfollow();
  };
};
