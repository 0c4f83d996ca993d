import { v5 } from 'uuid';
import { taskOfSessionKey } from '@antiphon/contracts/agent';
import type { CallExtension } from '@antiphon/contracts/metering';
import { buildPrompt } from '@antiphon/agent-domain';
import type { PromptParts, SessionState } from '@antiphon/agent-domain';
import type { ReservedInCommit } from '../sessions/session-stream.js';
import { lifetimeOf, maxOutputOf } from './reserve-budget.js';
import type { Reservation, ReserveDeps } from './reserve-budget.js';
import { findAgent } from './turn-policy.js';
import type { PolicyDeps } from './turn-policy.js';

/**
 * Size by which memory may grow from one turn to the next, tokens. A lost call is charged at its
 * bound, so at most this much more. A prompt that is larger still is a new attempt.
 */
const SLACK_TOKENS = 1_024;
/** Maximum number of turns after a reservation was left out that do not ask for one. */
const MAX_SKIPPED = 32;

/** Parts of a prompt that do not depend on the session. */
export type KnownParts = Omit<PromptParts, 'choice'>;

const roleKey = ({ open }: SessionState): string => JSON.stringify(open?.role ?? null);

/** Returns true if the call of the turn is admitted by budgets of tasks as well. */
const mayBeOfTask = ({ started, open }: SessionState): boolean =>
  (open?.chain.length ?? 0) > 0 || taskOfSessionKey(started?.sessionKey ?? '') !== null;

/** Returns the reservation of a commit in the form of metering's reply. */
export const toReservation = (reserved: ReservedInCommit, inputBound: number): Reservation | null =>
  inputBound <= reserved.inputBound
    ? { granted: true, inputBound, maxOutputTokens: reserved.outputBound, price: reserved.price }
    : null;

/**
 * Asks for the reservation of a session's next call in the commit that begins it. The bound follows
 * from the last prompt: the session is known exactly, and memory may grow by the slack. The prompt
 * is compared with the reservation before it is sent.
 */
export class ReservesInCommit {
  private last: { readonly parts: KnownParts; readonly role: string } | null = null;
  private missed = 0;
  private skips = 0;

  constructor(
    private readonly deps: ReserveDeps & Pick<PolicyDeps, 'agents'>,
    private readonly workspace: string,
  ) {}

  /** Keeps the parts of a prompt for the next turn, unless it has attached files. */
  remember(state: SessionState, parts: KnownParts): void {
    this.last = parts.attached === null ? { parts, role: roleKey(state) } : null;
  }

  /** Returns the extension for the commit that begins the call of this state; nothing without one. */
  extensionFor(state: SessionState): { extension?: CallExtension } {
    const reserve = this.requestFor(state);
    if (!reserve) return {};
    if (this.skips > 0) {
      this.skips -= 1;
      return {};
    }
    return { extension: { reserve } };
  }

  /** Asks less often while commits leave the reservation out: another request follows then. */
  record(isReserved: boolean): void {
    this.missed = isReserved ? 0 : Math.min(MAX_SKIPPED, Math.max(1, this.missed * 2));
    this.skips = this.missed;
  }

  private requestFor(state: SessionState): CallExtension['reserve'] | null {
    const { started, open } = state;
    const bound = this.boundOf(state);
    if (bound === null || !started || !open?.call || mayBeOfTask(state)) return null;
    const { models, times, agentChain } = this.deps;
    const { reservationId, provider, model } = open.call;
    const { agentId, sessionKey } = started;
    return {
      ...{ reservationId, eventId: v5('BudgetReserved ', reservationId), agentId, sessionKey },
      agents: [...(agentChain?.(this.workspace, agentId) ?? [agentId])],
      ...(open.caller === undefined ? {} : { caller: open.caller }),
      inputBound: bound + SLACK_TOKENS,
      maxOutputTokens: maxOutputOf(models, provider, model),
      lifetimeMs: lifetimeOf(times),
    };
  }

  private boundOf(state: SessionState): number | null {
    const { last, deps, workspace } = this;
    const { open, attached, started } = state;
    if (!last || !open?.call || attached.length > 0 || last.role !== roleKey(state)) return null;
    const agent = findAgent(deps, workspace, started?.agentId);
    if (!agent) return null;
    const systemPrompt = open.role ? last.parts.systemPrompt : agent.systemPrompt;
    const parts = { ...last.parts, systemPrompt, choice: open.call };
    return deps.models.inputBound(buildPrompt(state, open, parts));
  }
}
