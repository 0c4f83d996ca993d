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

/** The JetStream streams of the house (contract §6). None holds anything that the log does not have. */
export const STREAM_NAMES = ['EVENTS', 'LIVE', 'DLQ'] as const;
export type StreamName = (typeof STREAM_NAMES)[number];
export type StreamSpec = Partial<StreamConfig> & { readonly name: StreamName; readonly subjects: string[] };

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const MIB = 1024 * 1024;

export const STREAMS: Readonly<Record<StreamName, StreamSpec>> = {
  /** What the relay took from the log; sequence numbers are the log's positions (docs/adr/0022). */
  EVENTS: {
    name: 'EVENTS',
    subjects: ['evt.>'],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    // The relay publishes whole batches: one sync of the disk for each, not for each event.
    allow_atomic: true,
    discard: DiscardPolicy.Old,
    max_age: nanos(7 * DAY),
    duplicate_window: nanos(2 * MINUTE),
    deny_delete: true,
    allow_direct: true,
  },
  /** Frames of turns that run, for whoever joins late; the log has everything else. */
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
  /** Messages that a consumer gave up, with the reason in their headers; the originals are in the log. */
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

/** Codes of JetStream's API errors that we act on. */
export const JETSTREAM_CODES = {
  streamNotFound: 10059,
  streamExistsDifferently: 10058,
  consumerExistsDifferently: 10148,
  messageNotFound: 10037,
  wrongLastSequence: 10071,
} as const;

/** The code of a JetStream API error, undefined for any other error. */
export const jetstreamErrorCode = (error: unknown): number | undefined =>
  error instanceof JetStreamApiError ? error.code : undefined;

/** A server that has just started may drop what comes too early; whoever asks, asks again. */
const API_TIMEOUT_MS = 2_000;

/** JetStream's management API on a connection, without asking the account first (services may not). */
export const openJetStreamManager = (connection: NatsConnection): Promise<JetStreamManager> =>
  jetstreamManager(connection, { checkAPI: false, timeout: API_TIMEOUT_MS });

/** Makes the stream exist with this configuration, whatever there was; safe to call from many processes at once. */
export const ensureStream = async (manager: JetStreamManager, spec: StreamSpec): Promise<void> => {
  try {
    await manager.streams.add(spec);
  } catch (error) {
    if (jetstreamErrorCode(error) !== JETSTREAM_CODES.streamExistsDifferently) throw error;
    // The first sequence is given once, when the stream is made.
    const { name, first_seq: _, ...changeable } = spec;
    await manager.streams.update(name, changeable);
  }
};

/** How often a kept stream is made sure of. Making sure of one that is there costs the server nothing to speak of. */
const KEEP_MS = 15_000;

/**
 * Makes streams exist now, whenever NATS comes back (it may have lost them), and every 15 s, in case somebody deleted
 * one while it ran. Answers how to stop. Failures are logged and tried again.
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
      if (link.isConnected())
        logger.warn({ err: error, streams: names }, 'JetStream streams could not be ensured');
    }
  };
  await ensureAll();
  const timer = setInterval(() => void ensureAll(), KEEP_MS);
  timer.unref();
  const stopListening = link.onReconnect(() => void ensureAll());
  return () => {
    clearInterval(timer);
    stopListening();
  };
};
