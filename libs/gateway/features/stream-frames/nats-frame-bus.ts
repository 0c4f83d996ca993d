import { jetstreamManager, type JetStreamManager } from '@nats-io/jetstream';
import type { NatsLink } from '@antiphon/messaging';
import type { FrameBus } from './session-feeds.js';

const LIVE_STREAM = 'LIVE';
/** Frames of one session that are recalled at most; older text is in the log by then. */
const MAX_RECALLED = 10_000;

/** The clocks of PostgreSQL and NATS may differ by so much. */
const SKEW_MS = 10_000;

const isNothingThere = (error: unknown): boolean =>
  error instanceof Error && error.message === 'message not found';

const recallFrom = async (manager: JetStreamManager, subject: string, since: number): Promise<string[]> => {
  const texts: string[] = [];
  const wanted = { start_time: new Date(since - SKEW_MS), next_by_subj: subject, batch: MAX_RECALLED };
  try {
    for await (const message of await manager.direct.getBatch(LIVE_STREAM, wanted))
      texts.push(message.string());
  } catch (error) {
    if (!isNothingThere(error)) throw error;
  }
  return texts;
};

/** Frames over core NATS as they come, and over JetStream's memory stream as it still has them. */
export const createNatsFrameBus = (link: NatsLink): FrameBus => {
  let manager: Promise<JetStreamManager> | null = null;
  const managed = (): Promise<JetStreamManager> =>
    (manager ??= jetstreamManager(link.connection, { checkAPI: false }));

  return {
    subscribe: (subject, onMessage) => {
      const subscription = link.connection.subscribe(subject, {
        // A failed delivery ends the subscription; readers then find the rest in the log.
        callback: (error, message) => (error ? undefined : onMessage(message.string())),
      });
      return () => subscription.unsubscribe();
    },
    subscribed: async () => {
      // Whoever waits for an answer while the connection is lost hears of it when it is back (onReconnect).
      if (link.isConnected()) await link.connection.flush().catch(() => undefined);
    },
    onReconnect: (listener) => link.onReconnect(listener),
    recall: async (subject, since) => (link.isConnected() ? recallFrom(await managed(), subject, since) : []),
  };
};
