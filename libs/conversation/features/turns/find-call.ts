import { isTurnEnd } from '@antiphon/contracts/agent';
import type { OpenTurn, SessionState } from '@antiphon/conversation-domain';
import type { EventStore } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';
import { foldsOf } from '../sessions/fork-origin.js';
import type { CutAt } from '../sessions/fork-origin.js';
import type { SessionLog } from '../sessions/session-log.js';

/** A model call of a turn, with the session as it was at its start. */
export interface FoundCall {
  readonly state: SessionState;
  readonly turn: OpenTurn;
  readonly call: NonNullable<OpenTurn['call']>;
  /** Position of the event that started it. */
  readonly position: number;
  /** Version of the session at its start. */
  readonly version: number;
  readonly attempts: readonly number[];
  /** Turns that had ended, the oldest first. */
  readonly earlier: readonly string[];
  /** Positions of the requests of turns, by turn id. */
  readonly requested: ReadonlyMap<string, number>;
  /** Positions of the last attachments before the call, by path. */
  readonly attached: ReadonlyMap<string, number>;
  /** True if a message of the session is deleted, at any time. */
  readonly hasDeleted: boolean;
}

/** Identifies a model call. Without `attempt` it is the newest one of the turn. */
export interface WantedCall {
  readonly workspace: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly attempt?: number | undefined;
  /** Position of the log; events after it are ignored, except deletions. */
  readonly upTo: number;
}

/** Folds a session and collects what an explanation of one of its calls needs. */
class CallSearch {
  private found: Omit<FoundCall, 'attempts' | 'requested' | 'hasDeleted'> | null = null;
  private hasSession = false;
  private hasDeleted = false;
  private readonly attempts: number[] = [];
  private readonly ended: string[] = [];
  private readonly requested = new Map<string, number>();
  private readonly attached = new Map<string, number>();

  constructor(private readonly wanted: WantedCall) {}

  add(cut: CutAt): void {
    const { type, position, data } = cut.event;
    if (type === 'ChatMessageDeleted') this.hasDeleted = true;
    if (position > this.wanted.upTo) return;
    this.hasSession = true;
    const turnId = String(data['turnId']);
    if (type === 'TurnRequested') this.requested.set(turnId, position);
    if (type === 'ChatFileAttached') this.attached.set(String(data['path']), position);
    if (type === 'ChatFileDetached') this.attached.delete(String(data['path']));
    if (isTurnEnd(type)) this.ended.push(turnId);
    if (type === 'ModelCallStarted' && turnId === this.wanted.turnId) this.addCall(cut);
  }

  result(): FoundCall {
    const { sessionId, turnId } = this.wanted;
    const { found, attempts, requested, hasDeleted } = this;
    if (!this.hasSession) throw notFound('SESSION.NOT_FOUND', `there is no session ${sessionId}`);
    if (!requested.has(turnId)) throw notFound('TURN.NOT_FOUND', `there is no turn ${turnId}`);
    if (!found) throw notFound('TURN.NO_MODEL_CALL', `turn ${turnId} has no such model call`);
    return { ...found, attempts, requested, hasDeleted };
  }

  private addCall({ fold: { state, version }, event }: CutAt): void {
    const { open } = state;
    if (!open?.call) return;
    this.attempts.push(open.call.attempt);
    if (open.call.attempt !== (this.wanted.attempt ?? open.call.attempt)) return;
    this.found = {
      ...{ state, turn: open, call: open.call, position: event.position, version },
      earlier: [...this.ended],
      attached: new Map(this.attached),
    };
  }
}

/**
 * Finds a model call of a turn. Throws `SESSION.NOT_FOUND`, `TURN.NOT_FOUND` and
 * `TURN.NO_MODEL_CALL`.
 */
export const findCall = async (
  store: Pick<EventStore, 'readStreamPage'>,
  log: SessionLog,
  wanted: WantedCall,
): Promise<FoundCall> => {
  const search = new CallSearch(wanted);
  for await (const cut of foldsOf(store, log, wanted.workspace, wanted.sessionId)) search.add(cut);
  return search.result();
};
