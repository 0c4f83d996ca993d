import type { JetStreamManager } from '@nats-io/jetstream';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';
import type { Logger } from '@antiphon/observability';
import { callWhileConnected } from '../link/nats-link.js';
import type { NatsLink } from '../link/nats-link.js';
import { JETSTREAM_CODES, STREAMS, ensureStream, jetstreamErrorCode } from '../link/streams.js';

export interface LogForRelay extends Pick<
  EventStore,
  'readLog' | 'readLogPage' | 'headPosition' | 'basePosition'
> {
  /** Called when the relay reads no more pages, because it lost its leadership or stops. */
  readonly leaveLogPages?: () => Promise<void>;
}

/** The JetStream management API and its connection. */
export interface RelayTarget {
  readonly link: NatsLink;
  readonly manager: JetStreamManager;
}

const { name: STREAM } = STREAMS.EVENTS;

/** Returns the last sequence of `EVENTS`, null when the stream does not exist. */
export const lastSequence = async ({ link, manager }: RelayTarget): Promise<number | null> => {
  try {
    return (await callWhileConnected(link, () => manager.streams.info(STREAM))).state.last_seq;
  } catch (error) {
    if (jetstreamErrorCode(error) === JETSTREAM_CODES.streamNotFound) return null;
    throw error;
  }
};

const messageIdAt = async ({ link, manager }: RelayTarget, sequence: number): Promise<string | null> => {
  try {
    const stored = await callWhileConnected(link, () =>
      manager.streams.getMessage(STREAM, { seq: sequence }),
    );
    return stored?.header.get('Nats-Msg-Id') ?? null;
  } catch (error) {
    if (jetstreamErrorCode(error) === JETSTREAM_CODES.messageNotFound) return null;
    throw error;
  }
};

const eventAt = async (log: LogForRelay, position: number): Promise<RecordedEvent | undefined> =>
  (await log.readLog({ after: position - 1, limit: 1 })).find((event) => event.position === position);

/**
 * Compares the last message of `EVENTS` with the log's event at that position. True for an expired
 * message.
 */
const belongsToLog = async (target: RelayTarget, log: LogForRelay, last: number): Promise<boolean> => {
  const base = await log.basePosition();
  // Events after `last` have been archived: EVENTS cannot continue from there. The event at the
  // base itself cannot be read.
  if (last <= base) return last === base;
  if (last > (await log.headPosition())) return false;
  const [stored, event] = await Promise.all([messageIdAt(target, last), eventAt(log, last)]);
  return stored === null || event === undefined || stored === event.eventId;
};

/** Logs how many events `EVENTS` lacks. */
const logGap = async (log: LogForRelay, position: number, logger: Logger): Promise<void> => {
  const head = await log.headPosition();
  if (head > position) logger.info({ position, head, events: head - position }, 'EVENTS behind the log');
};

const createStream = async (target: RelayTarget, log: LogForRelay, logger: Logger): Promise<number> => {
  const position = await log.basePosition();
  await ensureStream(target.manager, { ...STREAMS.EVENTS, first_seq: position + 1 });
  await logGap(log, position, logger);
  return position;
};

/**
 * Aligns `EVENTS` with this log and returns the position it has reached: its last sequence
 * (docs/adr/0022). Deletes and recreates a stream of another history, for example after a restore.
 */
export const alignStream = async (target: RelayTarget, log: LogForRelay, logger: Logger): Promise<number> => {
  const last = await lastSequence(target);
  if (last === null) return createStream(target, log, logger);
  if (await belongsToLog(target, log, last)) {
    await ensureStream(target.manager, STREAMS.EVENTS);
    await logGap(log, last, logger);
    return last;
  }
  const head = await log.headPosition();
  logger.error({ last, head, alert: true }, 'EVENTS has another history, recreating');
  await target.manager.streams.delete(STREAM);
  return createStream(target, log, logger);
};
