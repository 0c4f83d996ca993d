import type { JetStreamManager } from '@nats-io/jetstream';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';
import type { Logger } from '@antiphon/observability';
import { callWhileConnected } from '../link/nats-link.js';
import type { NatsLink } from '../link/nats-link.js';
import { JETSTREAM_CODES, STREAMS, ensureStream, jetstreamErrorCode } from '../link/streams.js';

export type LogForRelay = Pick<EventStore, 'readLog' | 'headPosition' | 'basePosition'>;

/** JetStream's management, over the connection that it uses. */
export interface RelayTarget {
  readonly link: NatsLink;
  readonly manager: JetStreamManager;
}

const { name: STREAM } = STREAMS.EVENTS;
/** Last sequence of `EVENTS`; null when there is no such stream. */
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

/** Whether what `EVENTS` ends with is what the log has at that position; a message that has aged out cannot tell. */
const belongsToLog = async (target: RelayTarget, log: LogForRelay, last: number): Promise<boolean> => {
  const base = await log.basePosition();
  // Events between have left the log: EVENTS cannot go on from there. What stood at the base itself cannot be asked.
  if (last <= base) return last === base;
  if (last > (await log.headPosition())) return false;
  const [stored, event] = await Promise.all([messageIdAt(target, last), eventAt(log, last)]);
  return stored === null || event === undefined || stored === event.eventId;
};

/** Says how far behind the log `EVENTS` is before it is filled. */
const tellGap = async (log: LogForRelay, position: number, logger: Logger): Promise<void> => {
  const head = await log.headPosition();
  if (head > position)
    logger.info(
      { position, head, events: head - position },
      'EVENTS is behind the log; it goes on from there',
    );
};

const createFor = async (target: RelayTarget, log: LogForRelay, logger: Logger): Promise<number> => {
  const position = await log.basePosition();
  await ensureStream(target.manager, { ...STREAMS.EVENTS, first_seq: position + 1 });
  await tellGap(log, position, logger);
  return position;
};

/**
 * Makes `EVENTS` fit for this log and answers the position that it has reached: its last sequence (docs/adr/0022).
 * A stream of another history (the log was restored, or is another one) is deleted and made anew.
 */
export const alignStream = async (target: RelayTarget, log: LogForRelay, logger: Logger): Promise<number> => {
  const last = await lastSequence(target);
  if (last === null) return createFor(target, log, logger);
  if (await belongsToLog(target, log, last)) {
    await ensureStream(target.manager, STREAMS.EVENTS);
    await tellGap(log, last, logger);
    return last;
  }
  const head = await log.headPosition();
  logger.error(
    { last, head, alert: true },
    'EVENTS holds another history than the log; it is made anew from the log',
  );
  await target.manager.streams.delete(STREAM);
  return createFor(target, log, logger);
};
