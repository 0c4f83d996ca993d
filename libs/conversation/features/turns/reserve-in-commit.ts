import { v5 } from 'uuid';
import { taskOfSessionKey } from '@antiphon/contracts/agent';
import type { CallExtension } from '@antiphon/contracts/metering';
import { buildPrompt, hasFiles } from '@antiphon/conversation-domain';
import type { PromptParts, SessionState } from '@antiphon/conversation-domain';
import { createBoundedMap } from '@antiphon/kernel';
import type { BoundedMap } from '@antiphon/kernel';
import type { ReservedInCommit } from '../sessions/session-stream.js';
import type { CallBudget, Reservation } from './reserve-budget.js';
import type { TurnPolicy } from './turn-policy.js';

/**
 * Size by which memory may grow from one turn to the next, tokens. A prompt that is larger still is
 * a new attempt. A lost call is charged at its bound, so at most the slack more.
 */
const SLACK_TOKENS = 1_024;
/** Maximum slack of an agent whose memory grew by more: the usual share of memory in a prompt. */
const MAX_SLACK_TOKENS = 8_192;
/** Maximum number of agents whose last prompt is kept. */
const MAX_AGENTS = 256;
/** Maximum number of turns after a reservation was left out that do not ask for one. */
const MAX_SKIPPED = 32;

/** Parts of a prompt that do not depend on the session. */
export interface KnownParts extends Omit<PromptParts, 'choice'> {
  /** Returns the tools of the prompt in a later state. Absent: the same ones. */
  readonly toolsOf?: (state: SessionState) => PromptParts['tools'];
}

interface KnownPrompt {
  readonly parts: KnownParts;
  readonly turnId: string;
  readonly role: string;
}

/** Last prompt of an agent, for the first call of its next session, and the slack of its calls. */
interface AgentPrompt {
  readonly last: KnownPrompt | null;
  readonly slack: number;
}

/** Last prompts of the agents of a process. */
export type AgentPrompts = BoundedMap<AgentPrompt>;

export const createAgentPrompts = (): AgentPrompts => createBoundedMap(MAX_AGENTS);

export interface ReservesDeps {
  readonly budget: Pick<
    CallBudget,
    'inputBound' | 'knowsProvider' | 'maxOutputOf' | 'chainOf' | 'lifetimeMsOf'
  >;
  readonly policy: Pick<TurnPolicy, 'findAgent'>;
  readonly agentPrompts: AgentPrompts;
}

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
 * from the last prompt, that of another session of the agent for a first turn: the session is known
 * exactly. From one turn to the next, memory may grow by the slack. The prompt is compared with the
 * reservation before it is sent.
 */
export class ReservesInCommit {
  private last: KnownPrompt | null = null;
  private missed = 0;
  private skips = 0;

  constructor(
    private readonly deps: ReservesDeps,
    private readonly workspace: string,
  ) {}

  /** Keeps the parts of a prompt for the next call, unless it has files. */
  remember(state: SessionState, parts: KnownParts): void {
    const turnId = state.open?.turnId ?? '';
    this.last = !hasFiles(state) ? { parts, turnId, role: roleKey(state) } : null;
    this.putAgentPrompt(state, (before) => ({ ...before, last: this.last ?? before.last }));
  }

  /** Returns the extension for the commit that begins the call of this state; null without one. */
  extensionFor(state: SessionState): Pick<CallExtension, 'reserve'> | null {
    const reserve = this.requestFor(state);
    if (!reserve) return null;
    if (this.skips > 0) {
      this.skips -= 1;
      return null;
    }
    return { reserve };
  }

  /** Asks less often while commits leave the reservation out: another request follows then. */
  record(isReserved: boolean): void {
    this.missed = isReserved ? 0 : Math.min(MAX_SKIPPED, Math.max(1, this.missed * 2));
    this.skips = this.missed;
  }

  /** Leaves as much more room for prompts of the agent as one lacked, tokens. */
  widen(state: SessionState, missing: number): void {
    this.putAgentPrompt(state, (before) => ({
      ...before,
      slack: Math.min(MAX_SLACK_TOKENS, before.slack + missing),
    }));
  }

  private agentPrompt({ started }: SessionState): AgentPrompt {
    const found = this.deps.agentPrompts.get(`${this.workspace}/${started?.agentId}`);
    return found ?? { last: null, slack: SLACK_TOKENS };
  }

  private putAgentPrompt(state: SessionState, change: (before: AgentPrompt) => AgentPrompt): void {
    const key = `${this.workspace}/${state.started?.agentId}`;
    this.deps.agentPrompts.put(key, change(this.agentPrompt(state)));
  }

  private requestFor(state: SessionState): CallExtension['reserve'] | null {
    const { started, open } = state;
    const bound = this.boundOf(state);
    if (bound === null || !started || !open?.call || mayBeOfTask(state)) return null;
    const { budget, policy } = this.deps;
    const { reservationId } = open.call;
    const { agentId, sessionKey } = started;
    const agent = policy.findAgent(this.workspace, agentId);
    return {
      ...{ reservationId, eventId: v5('BudgetReserved ', reservationId), agentId, sessionKey },
      agents: budget.chainOf(this.workspace, agentId),
      ...(open.caller === undefined ? {} : { caller: open.caller }),
      inputBound: bound,
      maxOutputTokens: budget.maxOutputOf(open.call, agent),
      lifetimeMs: budget.lifetimeMsOf(open.call, agent),
    };
  }

  private boundOf(state: SessionState): number | null {
    const { deps, workspace } = this;
    const { open, started } = state;
    const agentPrompt = this.agentPrompt(state);
    const last = this.last ?? agentPrompt.last;
    if (!last || !open?.call || hasFiles(state) || last.role !== roleKey(state)) return null;
    const agent = deps.policy.findAgent(workspace, started?.agentId);
    if (!agent || !deps.budget.knowsProvider(workspace, open.call.provider)) return null;
    const systemPrompt = open.role ? last.parts.systemPrompt : agent.systemPrompt;
    const tools = last.parts.toolsOf?.(state) ?? last.parts.tools;
    const parts = { ...last.parts, systemPrompt, tools, choice: open.call };
    // All calls of a turn have the same memory and tools.
    const slack = last.turnId === open.turnId ? 0 : agentPrompt.slack;
    return deps.budget.inputBound(buildPrompt(state, open, parts), workspace) + slack;
  }
}
