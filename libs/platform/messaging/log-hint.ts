import { LOG_HINT_SUBJECT } from '@antiphon/contracts/log';
import type { NatsLink } from './nats-link.js';

/** Wakes whoever tails the log. A hint may be lost: tailing polls as well. */
export const publishLogHint = (link: NatsLink): void => {
  if (link.isConnected() && !link.connection.isDraining()) link.connection.publish(LOG_HINT_SUBJECT);
};

/**
 * Hints that come within this time, in ms, wake a follower once: a turn appends four times, and a look at the log
 * costs a follower far more than the wait costs a reader.
 */
const GATHER_MS = 20;

/** Calls `wake` soon after each hint, once for those that come together, until the answered function is called. */
export const onLogHint = (link: NatsLink, wake: () => void): (() => void) => {
  let timer: NodeJS.Timeout | undefined;
  const fire = (): void => {
    timer = undefined;
    wake();
  };
  const callback = (): void => void (timer ??= setTimeout(fire, GATHER_MS));
  const subscription = link.connection.subscribe(LOG_HINT_SUBJECT, { callback });
  return () => {
    clearTimeout(timer);
    subscription.unsubscribe();
  };
};
