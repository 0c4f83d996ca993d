import { Controller, Inject } from '@nestjs/common';
import { SessionRegistry } from '../sessions/session-registry.js';
import { TURN_END_STATUS, cancelTurn, isTurnEnd, sessionStream } from '@antiphon/contracts/agent';
import type { TurnEndStatus } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { followUps } from '@antiphon/conversation-domain';
import type { SessionState } from '@antiphon/conversation-domain';
import { readBackwards } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import { isAppError, notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { requireOwnSession, AGENT_STORE } from '@antiphon/agents-features';
import { TurnPolicy } from './turn-policy.js';

export type CancelTurnRequest = z.output<typeof cancelTurn.request>;
export type CancelTurnReply = z.output<typeof cancelTurn.reply>;

const PAGE = 500;
/** Maximum number of attempts: another process may take the session over before the append. */
const MAX_ROUNDS = 5;

const isOpen = ({ open, queue }: SessionState, turnId: string | undefined): boolean =>
  open !== null && (turnId === undefined || [open, ...queue].some((turn) => turn.turnId === turnId));

/** Handles `cmd.agent.turn.cancel`: records the cancel and notifies the session's driver. */
@Controller()
export class CancelTurn {
  constructor(
    @Inject(SessionRegistry) private readonly registry: SessionRegistry,
    @Inject(TurnPolicy) private readonly policy: TurnPolicy,
    @Inject(AGENT_STORE) private readonly store: EventStore,
  ) {}

  @HandleRequest(cancelTurn)
  async handle(request: CancelTurnRequest): Promise<CancelTurnReply> {
    for (let round = 1; ; round++) {
      try {
        return await this.cancel(request);
      } catch (error) {
        if (!isAppError(error) || error.code !== 'LOG.FENCED' || round === MAX_ROUNDS) throw error;
      }
    }
  }

  private async cancel(request: CancelTurnRequest): Promise<CancelTurnReply> {
    const { registry, policy } = this;
    const { workspace, sessionId, turnId } = request;
    const session = await registry.requireSession(workspace, sessionId);
    const { actor } = session;
    await requireOwnSession(policy.agents, request, actor.fold().state.started?.agentId ?? '');
    const found: { state: SessionState } = { state: actor.fold().state };
    await actor.commit(({ state }) => {
      found.state = state;
      const data = turnId === undefined ? {} : { turnId };
      const cancels = policy.decider.decide({ type: 'CancelTurns', data, now: policy.now() }, state);
      if (!actor.lease.held() || cancels.length === 0) return { events: cancels };
      const next = cancels.reduce(policy.decider.evolve, state);
      return { events: [...cancels, ...followUps(next, policy.contextOf(actor, state))] };
    });
    registry.wakeDriver(session);
    return isOpen(found.state, turnId) ? { cancelled: true } : this.replyNotCancelled(request, found.state);
  }

  private async replyNotCancelled(
    { workspace, sessionId, turnId }: CancelTurnRequest,
    { ended }: SessionState,
  ): Promise<CancelTurnReply> {
    if (turnId === undefined) return { cancelled: false, status: ended.at(-1)?.status ?? 'idle' };
    const known = ended.find((turn) => turn.turnId === turnId)?.status;
    return { cancelled: false, status: known ?? (await this.readStatus(workspace, sessionId, turnId)) };
  }

  /** Reads from the log how a turn ended that is too old for the fold. */
  private async readStatus(workspace: string, sessionId: string, turnId: string): Promise<TurnEndStatus> {
    const { store } = this;
    const stream = sessionStream(sessionId);
    for await (const { type, data } of readBackwards(store, workspace, stream, PAGE))
      if (isTurnEnd(type) && data['turnId'] === turnId) return TURN_END_STATUS[type];
    throw notFound('TURN.NOT_FOUND', `this session has no turn ${turnId}`);
  }
}
