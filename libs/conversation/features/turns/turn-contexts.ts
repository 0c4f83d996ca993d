import { rejected } from '@antiphon/kernel';
import type { SessionActor } from '../sessions/session-actor.js';
import type { SessionFold } from '../sessions/session-fold.js';
import type { UpcomingTurn } from '../sessions/local-session.js';
import type { CallPreparer, TurnContext } from './prepare-call.js';
import type { TurnPolicy } from './turn-policy.js';

interface TurnContextsDeps {
  readonly preparer: Pick<CallPreparer, 'requestContext'>;
  readonly policy: Pick<TurnPolicy, 'findAgent'>;
}

/** Contexts of the turns of one session. */
export class TurnContexts {
  private newest: { readonly turnId: string; readonly requested: Promise<TurnContext> } | null = null;

  constructor(
    private readonly deps: TurnContextsDeps,
    private readonly actor: SessionActor,
  ) {}

  /** Returns the context of the fold's open turn. */
  of({ state }: SessionFold): Promise<TurnContext> {
    const { agentId = '', sessionKey = '' } = state.started ?? {};
    const { turnId = '', content = '' } = state.open ?? {};
    return this.request({ turnId, content, agentId, sessionKey });
  }

  /** Requests the context of a turn once. A failed request is repeated by the next caller. */
  request(turn: UpcomingTurn): Promise<TurnContext> {
    if (this.newest?.turnId === turn.turnId) return this.newest.requested;
    const { preparer, policy } = this.deps;
    const { workspace, sessionId } = this.actor;
    const agent = policy.findAgent(workspace, turn.agentId);
    if (!agent) return Promise.reject(rejected('AGENT.NOT_FOUND', `there is no agent "${turn.agentId}"`));
    const source = { workspace, sessionId, fold: this.actor.fold() };
    const requested = preparer.requestContext(source, agent, turn);
    this.newest = { turnId: turn.turnId, requested };
    requested.catch(() => {
      if (this.newest?.requested === requested) this.newest = null;
    });
    return requested;
  }
}
