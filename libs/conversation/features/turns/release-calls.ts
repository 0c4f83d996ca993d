import type { SessionCommand } from '@antiphon/conversation-domain';
import type { Logger } from '@antiphon/observability';
import type { SessionActor } from '../sessions/session-actor.js';
import type { TurnPolicy } from './turn-policy.js';

/**
 * Releases the tool calls that this process has in flight in a session, because it stops in order.
 * It is not counted as a process that they lost.
 */
export const releaseCalls = async (
  policy: Pick<TurnPolicy, 'decider' | 'now'>,
  actor: SessionActor,
  logger: Logger,
): Promise<void> => {
  const { turnId } = actor.known()?.state.open ?? {};
  const callIds = [...actor.inFlight().calls];
  if (turnId === undefined || callIds.length === 0) return;
  const command: SessionCommand = { type: 'ReleaseTools', data: { turnId, callIds }, now: policy.now() };
  try {
    await actor.commit(({ state }) => ({
      events: actor.lease.held() ? policy.decider.decide(command, state) : [],
    }));
  } catch (err) {
    logger.warn({ work: 'tool-call', err, sessionId: actor.sessionId }, 'work not released');
  }
};
