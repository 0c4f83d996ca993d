import { connectOperator, findNats } from '../audit/audit-engines.js';
import type { Witness } from './loss-window.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** What became of `EVENTS`, and the last that it had of the log. */
export interface Forgotten {
  readonly messages: 'deleted' | 'none' | 'unknown';
  readonly known: readonly Witness[];
}

/**
 * Deletes `EVENTS` of an outside NATS, with its consumers: it may tell what the restored log does not have. The relay
 * makes it again. `unknown` where no address is given.
 */
export const forgetEvents = async (env: Environment, cwd: string): Promise<Forgotten> => {
  const nats = env['ANTIPHON_NATS_URL'] ? findNats(env, cwd) : null;
  if (nats === null) return { messages: 'unknown', known: [] };
  const { JETSTREAM_CODES, STREAMS, jetstreamErrorCode, openJetStreamManager } =
    await import('@antiphon/messaging');
  const link = await connectOperator(nats, 'antiphon-restore');
  try {
    const manager = await openJetStreamManager(link.connection);
    const { state } = await manager.streams.info(STREAMS.EVENTS.name);
    await manager.streams.delete(STREAMS.EVENTS.name);
    const at = state.last_seq > 0 ? new Date(state.last_ts).toISOString() : null;
    return { messages: 'deleted', known: [{ where: 'JetStream EVENTS', position: state.last_seq, at }] };
  } catch (error) {
    if (jetstreamErrorCode(error) === JETSTREAM_CODES.streamNotFound) return { messages: 'none', known: [] };
    throw error;
  } finally {
    await link.drain();
  }
};
