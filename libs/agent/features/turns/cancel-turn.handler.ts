import type { TurnEndStatus, cancelTurn } from '@antiphon/contracts/agent';
import { TURN_END_STATUS, isTurnEnd, sessionStream } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { followUps } from '@antiphon/agent-domain';
import type { SessionState } from '@antiphon/agent-domain';
import type { EventStore } from '@antiphon/event-store';
import { isAppError, isoTime, notFound } from '@antiphon/kernel';
import { followUpContext } from './turn-policy.js';
import type { PolicyDeps } from './turn-policy.js';
import type { SessionRegistry } from '../sessions/session-registry.js';
import type { SessionFold } from '../sessions/session-fold.js';

export type CancelTurnRequest = z.output<typeof cancelTurn.request>;
export type CancelTurnReply = z.output<typeof cancelTurn.reply>;
export type CancelTurn = (request: CancelTurnRequest) => Promise<CancelTurnReply>;

export interface CancelTurnDeps extends PolicyDeps {
  readonly store: EventStore;
}

const PAGE = 500;
const MAX_ROUNDS = 5;

const isOpen = ({ open, queue }: SessionState, turnId: string | undefined): boolean =>
  open !== null && (turnId === undefined || [open, ...queue].some((turn) => turn.turnId === turnId));

/** Makes the use case behind `cmd.agent.turn.cancel`: a cancel is a fact, and the driver learns of it at once. */
export const createCancelTurn = (services: CancelTurnDeps, registry: SessionRegistry): CancelTurn => {
  const { store, clock, log } = services;

  /** How a turn ended that the fold no longer remembers. */
  const statusFromLog = async (
    workspace: string,
    sessionId: string,
    turnId: string,
  ): Promise<TurnEndStatus> => {
    const stream = sessionStream(sessionId);
    for (let before = await store.streamVersion(workspace, stream); before > 0; before -= PAGE) {
      const fromVersion = Math.max(1, before - PAGE + 1);
      const events = await store.readStream(workspace, stream, { fromVersion, limit: PAGE });
      const end = events.find(({ type, data }) => isTurnEnd(type) && data['turnId'] === turnId);
      if (end && isTurnEnd(end.type)) return TURN_END_STATUS[end.type];
    }
    throw notFound('TURN.NOT_FOUND', `this session has no turn ${turnId}`);
  };
  const nothingToCancel = async (
    { workspace, sessionId, turnId }: CancelTurnRequest,
    { ended }: SessionState,
  ): Promise<CancelTurnReply> => {
    if (turnId === undefined) return { cancelled: false, status: ended.at(-1)?.status ?? 'idle' };
    const known = ended.find((turn) => turn.turnId === turnId)?.status;
    return { cancelled: false, status: known ?? (await statusFromLog(workspace, sessionId, turnId)) };
  };

  const cancel = async (request: CancelTurnRequest): Promise<CancelTurnReply> => {
    const { workspace, sessionId, turnId } = request;
    const { actor, driver, claim } = await registry.requireSession(workspace, sessionId);
    const found: { state: SessionState } = { state: actor.fold().state };
    await actor.commit(({ state }: SessionFold) => {
      found.state = state;
      const data = turnId === undefined ? {} : { turnId };
      const asked = log.decider.decide({ type: 'CancelTurns', data, now: isoTime(clock) }, state);
      const next = asked.reduce(log.decider.evolve, state);
      const context = followUpContext(services, actor, state);
      return {
        events: actor.lease.held() && asked.length > 0 ? [...asked, ...followUps(next, context)] : asked,
      };
    });
    registry.wakeDriver({ actor, driver, claim });
    return isOpen(found.state, turnId) ? { cancelled: true } : nothingToCancel(request, found.state);
  };

  return async (request) => {
    for (let round = 1; ; round++) {
      try {
        return await cancel(request);
      } catch (error) {
        if (!isAppError(error) || error.code !== 'LOG.FENCED' || round === MAX_ROUNDS) throw error;
      }
    }
  };
};
