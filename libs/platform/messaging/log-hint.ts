import { LOG_HINT_SUBJECT } from '@antiphon/contracts/log';
import type { NatsLink } from './nats-link.js';

/** Wakes whoever tails the log. A hint may be lost: tailing polls as well. */
export const publishLogHint = (link: NatsLink): void => {
  if (link.isConnected() && !link.connection.isDraining()) link.connection.publish(LOG_HINT_SUBJECT);
};

/** Calls `wake` at each hint until the answered function is called. */
export const onLogHint = (link: NatsLink, wake: () => void): (() => void) => {
  const subscription = link.connection.subscribe(LOG_HINT_SUBJECT, { callback: () => wake() });
  return () => subscription.unsubscribe();
};
