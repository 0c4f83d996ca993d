import { jetstreamManager, type JetStreamManager } from '@nats-io/jetstream';
import type { NatsLink } from '@antiphon/messaging';
import type { FrameBus } from './session-feeds.js';

const LIVE_STREAM = 'LIVE';
/** Maximum number of messages of one replay. Older text is in the log by then. */
const MAX_REPLAYED = 10_000;

/** Tolerated difference between the clocks of PostgreSQL and NATS, ms. */
const SKEW_MS = 10_000;

const isEmptyReplay = (error: unknown): boolean =>
  error instanceof Error && error.message === 'message not found';

/**
 * Maximum number of concurrent replays of a process. After an outage every reader of a running
 * attempt starts one, and NATS closes a connection for which 64 MiB wait.
 */
const MAX_REPLAYS = 4;

/** Timeout between two messages of a replay, ms. The rest was lost with a connection. */
const SILENCE_MS = 5_000;

/**
 * Uses the callback API, because the library does not end its subscription when it returns an
 * iterator.
 */
const replayFrom = async (
  link: NatsLink,
  manager: JetStreamManager,
  { subject, since, each }: { subject: string; since: number; each: (text: string) => void },
): Promise<void> => {
  let end: (error: Error | undefined) => void;
  const ended = new Promise<Error | undefined>((resolve) => (end = resolve));
  let restartTimer = (): void => undefined;
  const batch = await manager.direct.getBatch(LIVE_STREAM, {
    ...{ start_time: new Date(since - SKEW_MS), next_by_subj: subject, batch: MAX_REPLAYED },
    callback: (done, message) => {
      if (done) return end(done.err);
      restartTimer();
      each(message.string());
    },
  });
  const abandon = (): void => batch.stop(new Error('LIVE was not read to its end'));
  const timer = setTimeout(abandon, SILENCE_MS).unref();
  restartTimer = () => void timer.refresh();
  const stopWatching = link.onDisconnect(abandon);
  const error = await ended;
  clearTimeout(timer);
  stopWatching();
  if (error !== undefined && !isEmptyReplay(error)) throw error;
};

/**
 * Creates the frame bus: live frames over core NATS, past ones from JetStream's memory stream
 * `LIVE`.
 */
export const createNatsFrameBus = (link: NatsLink): FrameBus => {
  let manager: Promise<JetStreamManager> | null = null;
  const managed = (): Promise<JetStreamManager> =>
    (manager ??= jetstreamManager(link.connection, { checkAPI: false }));

  let running = 0;
  const waiting: (() => void)[] = [];
  const replay: FrameBus['replay'] = async (subject, since, each) => {
    while (running >= MAX_REPLAYS) await new Promise<void>((resolve) => waiting.push(resolve));
    running++;
    try {
      if (link.isConnected()) await replayFrom(link, await managed(), { subject, since, each });
    } finally {
      running--;
      waiting.shift()?.();
    }
  };

  return {
    subscribe: (subject, onMessage) => {
      const subscription = link.connection.subscribe(subject, {
        // A failed delivery ends the subscription. Readers then find the rest in the log.
        callback: (error, message) => (error ? undefined : onMessage(message.string())),
      });
      return () => subscription.unsubscribe();
    },
    flushSubscriptions: async () => {
      // While disconnected there is nothing to flush; `onReconnect` notifies the readers later.
      if (link.isConnected()) await link.connection.flush().catch(() => undefined);
    },
    onReconnect: (listener) => link.onReconnect(listener),
    replay,
  };
};
