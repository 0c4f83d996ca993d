import type { SessionCommand } from '@antiphon/conversation-domain';
import { isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { SessionActor } from '../sessions/session-actor.js';
import type { SessionLog } from '../sessions/session-log.js';

export interface ReleaseDeps {
  readonly log: Pick<SessionLog, 'decider'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Releases the tool calls that this process has in flight in a session, because it stops in order.
 * It is not counted as a process that they lost.
 */
export const releaseCalls = async (
  { log, clock, logger }: ReleaseDeps,
  actor: SessionActor,
): Promise<void> => {
  const { turnId } = actor.known()?.state.open ?? {};
  const callIds = [...actor.inFlight().calls];
  if (turnId === undefined || callIds.length === 0) return;
  const command: SessionCommand = { type: 'ReleaseTools', data: { turnId, callIds }, now: isoTime(clock) };
  try {
    await actor.commit(({ state }) => ({
      events: actor.lease.held() ? log.decider.decide(command, state) : [],
    }));
  } catch (err) {
    logger.warn({ work: 'tool-call', err, sessionId: actor.sessionId }, 'work not released');
  }
};
