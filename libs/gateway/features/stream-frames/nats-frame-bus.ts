import { jetstreamManager, type JetStreamManager } from '@nats-io/jetstream';
import { EVENT_HEADERS, type NatsLink } from '@antiphon/messaging';
import type { FrameBus } from './session-feeds.js';

const LIVE_STREAM = 'LIVE';
/** Frames of one session that are recalled at most; older text is in the log by then. */
const MAX_RECALLED = 10_000;

/** The clocks of PostgreSQL and NATS may differ by so much. */
const SKEW_MS = 10_000;

const isNothingThere = (error: unknown): boolean =>
  error instanceof Error && error.message === 'message not found';

/**
 * Recalls of one process that are under way at once: NATS closes a connection for which 64 MiB wait, and after an outage
 * every reader of an attempt at work asks.
 */
const MAX_RECALLS = 4;

/** A server that has said nothing for so long says no more: the rest went with a connection. */
const ANSWER_MS = 5_000;

/** With a callback, because the library forgets to end its subscription when it answers an iterator. */
const recallFrom = async (
  link: NatsLink,
  manager: JetStreamManager,
  { subject, since, each }: { subject: string; since: number; each: (text: string) => void },
): Promise<void> => {
  let heard = (): void => undefined;
  let end: (error: Error | undefined) => void;
  const ended = new Promise<Error | undefined>((resolve) => (end = resolve));
  const batch = await manager.direct.getBatch(LIVE_STREAM, {
    ...{ start_time: new Date(since - SKEW_MS), next_by_subj: subject, batch: MAX_RECALLED },
    callback: (done, message) => {
      if (done) return end(done.err);
      heard();
      each(message.string());
    },
  });
  const giveUp = (): void => batch.stop(new Error('LIVE was not read to its end'));
  const silent = setTimeout(giveUp, ANSWER_MS).unref();
  heard = () => void silent.refresh();
  const endWatch = link.onDisconnect(giveUp);
  const error = await ended;
  clearTimeout(silent);
  endWatch();
  if (error !== undefined && !isNothingThere(error)) throw error;
};

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

/** Frames over core NATS as they come, and over JetStream's memory stream as it still has them. */
export const createNatsFrameBus = (link: NatsLink): FrameBus => {
  let manager: Promise<JetStreamManager> | null = null;
  const managed = (): Promise<JetStreamManager> =>
    (manager ??= jetstreamManager(link.connection, { checkAPI: false }));

  let recalling = 0;
  const waiting: (() => void)[] = [];
  const recall: FrameBus['recall'] = async (subject, since, each) => {
    while (recalling >= MAX_RECALLS) await new Promise<void>((resolve) => waiting.push(resolve));
    recalling++;
    try {
      if (link.isConnected()) await recallFrom(link, await managed(), { subject, since, each });
    } finally {
      recalling--;
      waiting.shift()?.();
    }
  };

  return {
    subscribe: (subject, onMessage) => {
      const subscription = link.connection.subscribe(subject, {
        // A failed delivery ends the subscription; readers then find the rest in the log.
        callback: (error, message) => (error ? undefined : onMessage(message.string())),
      });
      return () => subscription.unsubscribe();
    },
    subscribeToEvents: (subject, onEvent) => {
      const subscription = link.connection.subscribe(subject, {
        // The type is in a header, so that only the few events that end a turn are parsed.
        callback: (error, message) => {
          if (!error) onEvent(message.headers?.get(EVENT_HEADERS.type) ?? '', () => parsed(message.string()));
        },
      });
      return () => subscription.unsubscribe();
    },
    subscribed: async () => {
      // Whoever waits for an answer while the connection is lost hears of it when it is back (onReconnect).
      if (link.isConnected()) await link.connection.flush().catch(() => undefined);
    },
    onReconnect: (listener) => link.onReconnect(listener),
    recall,
  };
};
