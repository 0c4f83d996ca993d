import {
  DiscardPolicy,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  jetstreamManager,
} from '@nats-io/jetstream';
import type { JetStreamManager, StreamConfig } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Logger } from '@antiphon/observability';
import type { NatsLink } from './nats-link.js';

/** Names of all JetStream streams. Their content can be rebuilt from the log. */
export const STREAM_NAMES = ['EVENTS', 'LIVE', 'DLQ'] as const;
export type StreamName = (typeof STREAM_NAMES)[number];
export type StreamSpec = Partial<StreamConfig> & { readonly name: StreamName; readonly subjects: string[] };

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const MIB = 1024 * 1024;

export const STREAMS: Readonly<Record<StreamName, StreamSpec>> = {
  /** Events relayed from the log; sequence numbers are the log's positions (docs/adr/0022). */
  EVENTS: {
    name: 'EVENTS',
    subjects: ['evt.>'],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    // The relay publishes whole batches: one disk sync for a batch instead of one for an event.
    allow_atomic: true,
    discard: DiscardPolicy.Old,
    max_age: nanos(7 * DAY),
    // Half of the engine's file store: a full store would stop the relay.
    max_bytes: 4096 * MIB,
    duplicate_window: nanos(2 * MINUTE),
    deny_delete: true,
    allow_direct: true,
  },
  /** Frames of running turns, for clients that join late; the log has everything else. */
  LIVE: {
    name: 'LIVE',
    subjects: ['live.>'],
    retention: RetentionPolicy.Limits,
    storage: StorageType.Memory,
    discard: DiscardPolicy.Old,
    max_age: nanos(10 * MINUTE),
    max_bytes: 128 * MIB,
    allow_direct: true,
  },
  /** Dead letters, with the reason in their headers; the originals are in the log. */
  DLQ: {
    name: 'DLQ',
    subjects: ['dlq.>'],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.Old,
    max_age: nanos(30 * DAY),
    max_bytes: 1024 * MIB,
    duplicate_window: nanos(10 * MINUTE),
    allow_direct: true,
  },
};

/** Codes of the JetStream API errors that this package handles. */
export const JETSTREAM_CODES = {
  streamNotFound: 10059,
  streamExistsDifferently: 10058,
  storageExceeded: 10047,
  consumerExistsDifferently: 10148,
  messageNotFound: 10037,
  wrongLastSequence: 10071,
} as const;

/** Returns the code of a JetStream API error, undefined for any other error. */
export const jetstreamErrorCode = (error: unknown): number | undefined =>
  error instanceof JetStreamApiError ? error.code : undefined;

/** Short, because a server that has just started may drop a request: callers retry. */
const API_TIMEOUT_MS = 2_000;

/**
 * Opens JetStream's management API on a connection. Skips the account check, which no service has
 * permission for.
 */
export const openJetStreamManager = (connection: NatsConnection): Promise<JetStreamManager> =>
  jetstreamManager(connection, { checkAPI: false, timeout: API_TIMEOUT_MS });

/** Creates the stream, or updates its configuration. Safe to call from many processes at once. */
export const ensureStream = async (manager: JetStreamManager, spec: StreamSpec): Promise<void> => {
  try {
    await manager.streams.add(spec);
  } catch (error) {
    const code = jetstreamErrorCode(error);
    // The server counts the size of an existing stream twice, before it looks for the stream.
    const mayExist =
      code === JETSTREAM_CODES.streamExistsDifferently || code === JETSTREAM_CODES.storageExceeded;
    if (!mayExist) throw error;
    // The first sequence can only be set when the stream is created.
    const { name, first_seq: _, ...changeable } = spec;
    await manager.streams.update(name, changeable).catch((cause: unknown) => {
      throw jetstreamErrorCode(cause) === JETSTREAM_CODES.streamNotFound ? error : cause;
    });
  }
};

/**
 * Interval between checks of a stream, ms. A check of an existing stream costs the server next to
 * nothing.
 */
const ENSURE_EVERY_MS = 15_000;

/**
 * Creates streams now, after each reconnect (NATS may have lost them) and every 15 s, in case an
 * operator deleted one. Failures are logged and retried. Returns a function that stops it.
 */
export const maintainStreams = async (
  link: NatsLink,
  names: readonly StreamName[],
  logger: Logger,
): Promise<() => void> => {
  const manager = await openJetStreamManager(link.connection);
  const ensureAll = async (): Promise<void> => {
    if (!link.isConnected()) return;
    try {
      for (const name of names) await ensureStream(manager, STREAMS[name]);
    } catch (error) {
      if (link.isConnected()) logger.warn({ err: error, streams: names }, 'JetStream streams not ensured');
    }
  };
  await ensureAll();
  const timer = setInterval(() => void ensureAll(), ENSURE_EVERY_MS);
  timer.unref();
  const unsubscribe = link.onReconnect(() => void ensureAll());
  return () => {
    clearInterval(timer);
    unsubscribe();
  };
};
