import type { NatsLink } from '@antiphon/messaging';
import { connectOperator, findNats } from '../connection/stack-locations.js';
import type { CommandContext } from '../output.js';
import type { Witness } from './loss-window.js';

/** Outcome of deleting JetStream's messages of the replaced log. */
export interface DeletedMessages {
  /** `unknown` when no address of NATS is given. */
  readonly messages: 'deleted' | 'none' | 'unknown';
  /** Deleted dead letters of events; null when the whole store was deleted, or nothing. */
  readonly deadLetters: number | null;
  /** The last event that the stream contained. */
  readonly known: readonly Witness[];
}

/** Deletes the dead letters of events, which the restored log may lack. Those of requests stay. */
const deleteDeadLetters = async (link: NatsLink): Promise<number> => {
  const { STREAMS, listDeadLetters, openJetStreamManager } = await import('@antiphon/messaging');
  const letters = (await listDeadLetters(link)).filter(({ subject }) => subject.startsWith('evt.'));
  const manager = await openJetStreamManager(link.connection);
  for (const { sequence } of letters) await manager.streams.deleteMessage(STREAMS.DLQ.name, sequence);
  return letters.length;
};

const deleteStream = async (link: NatsLink): Promise<Pick<DeletedMessages, 'messages' | 'known'>> => {
  const { JETSTREAM_CODES, STREAMS, jetstreamErrorCode, openJetStreamManager } =
    await import('@antiphon/messaging');
  try {
    const manager = await openJetStreamManager(link.connection);
    const { state } = await manager.streams.info(STREAMS.EVENTS.name);
    await manager.streams.delete(STREAMS.EVENTS.name);
    const at = state.last_seq > 0 ? new Date(state.last_ts).toISOString() : null;
    return { messages: 'deleted', known: [{ where: 'JetStream EVENTS', position: state.last_seq, at }] };
  } catch (error) {
    if (jetstreamErrorCode(error) === JETSTREAM_CODES.streamNotFound) return { messages: 'none', known: [] };
    throw error;
  }
};

/**
 * Deletes the stream `EVENTS` of an external NATS, and the dead letters of events. Both may contain
 * events that the restored log lacks. The relay creates the stream again.
 */
export const deleteMessages = async (context: CommandContext): Promise<DeletedMessages> => {
  const nats = context.env['ANTIPHON_NATS_URL'] ? findNats(context) : null;
  if (nats === null) return { messages: 'unknown', deadLetters: null, known: [] };
  const link = await connectOperator(nats, 'antiphon-restore');
  try {
    const stream = await deleteStream(link);
    return { ...stream, deadLetters: await deleteDeadLetters(link) };
  } finally {
    await link.drain();
  }
};
