import { causedError } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import type { AgentActor, AgentHop, SessionAddress, cancelTurn, submitTurn } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { HANDOVER_LOOP, HAND_OVER, checkHop, factsOf, recipientOf } from '@antiphon/conversation-domain';
import type { OpenTurn, TurnToolCall } from '@antiphon/conversation-domain';
import type { AntiphonConfig } from '@antiphon/config';
import { digestOf } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import { rejected } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { AgentDirectory } from '@antiphon/agents-features';
import { requireReach } from '@antiphon/agents-features';
import { readOutcome, keyOf, readBinding, Stopped } from '@antiphon/conversation-features';
import type { TurnEndWatcher, TurnOutcome, TurnRef, NativeCall } from '@antiphon/conversation-features';
import type { BlockedRequests } from './blocked-requests.js';

type Submitted = Pick<z.output<typeof submitTurn.reply>, 'sessionId' | 'turnId'>;

export interface AskAgentDeps {
  /** Begins turns of other agents. */
  readonly submitTurn: {
    handle(request: z.output<typeof submitTurn.request>, chain: AgentHop[]): Promise<Submitted>;
  };
  readonly cancelTurn: { handle(request: z.output<typeof cancelTurn.request>): Promise<unknown> };
  readonly config: Pick<AntiphonConfig, 'messages'>;
  readonly store: EventStore;
  readonly blocked: BlockedRequests;
  readonly logger: Logger;
  readonly turnEnds: Pick<TurnEndWatcher, 'waitForEnd'>;
  readonly agents: Pick<AgentDirectory, 'load'>;
}

/** Returns the principal of an agent's tool call. */
export const actorOf = ({ agentId }: Pick<NativeCall, 'agentId'>): AgentActor => ({
  caller: `agent/${agentId}`,
  role: 'member',
  agentId,
});

const addressOf = (from: string, to: string, callId: string): SessionAddress => ({
  ...{ agentId: to, channel: 'agent', account: from, peer: callId },
});

/** The same request by every agent of a chain of hand-overs. */
const openRequestOf = ({ chain, content }: OpenTurn): string => {
  const last = chain.at(-1);
  return last?.kind === 'hand_over' ? last.digest : digestOf({ content });
};

/**
 * Runs a turn of another agent for a tool call, in a session of its own. The turn's idempotency key
 * is the id of the call, so that a new driver joins it.
 */
export class AskAgent {
  constructor(private readonly deps: AskAgentDeps) {}

  /** Asks another agent and returns its answer. */
  ask(call: NativeCall, input: { readonly agent: string; readonly question: string }): Promise<string> {
    const digest = digestOf({ content: input.question });
    return this.request(call, { kind: 'ask', to: input.agent, digest }, input.question);
  }

  /** Gives the open turn to another agent and returns its answer. */
  handOver(
    call: NativeCall,
    input: { readonly agent: string; readonly note?: string | undefined },
  ): Promise<string> {
    const { turn, agentId, callId } = call;
    const first = turn.steps.at(-1)?.calls.find(({ name }) => name === HAND_OVER);
    if (first && first.callId !== callId)
      throw withCause('AGENT.NOT_ALLOWED', { kind: 'turn_given_already' });
    const note = input.note === undefined ? '' : `\n\n[note of the agent ${agentId}: ${input.note}]`;
    const digest = openRequestOf(turn);
    return this.request(call, { kind: 'hand_over', to: input.agent, digest }, `${turn.content}${note}`);
  }

  /** Cancels the turn that a call began, if it began one. */
  async abandon(
    { workspace, agentId }: Pick<NativeCall, 'workspace' | 'agentId'>,
    { callId, input }: Pick<TurnToolCall, 'callId' | 'input'>,
  ): Promise<void> {
    const to = recipientOf(input);
    if (to === '') return;
    const sessionKey = keyOf(addressOf(agentId, to, callId));
    const { sessionId } = await readBinding(this.deps.store, workspace, sessionKey);
    if (sessionId !== null) await this.cancel({ workspace, sessionId }, `agent/${agentId}`);
  }

  private async request(
    call: NativeCall,
    { kind, to, digest }: Pick<AgentHop, 'kind' | 'to' | 'digest'>,
    content: string,
  ): Promise<string> {
    const { workspace, sessionId, agentId: from, turn, callId } = call;
    await requireReach(this.deps.agents, workspace, from, to);
    const hop: AgentHop = {
      ...{ kind, from, to, digest, facts: factsOf(turn) },
      ...{ sessionId, turnId: turn.turnId, callId },
    };
    const verdict = checkHop(turn.chain, hop, this.deps.config.messages.maxHops);
    if (!verdict.allowed) {
      await this.deps.blocked.record(call, verdict);
      throw withCause(verdict.code, verdict.cause);
    }
    const submitted = await this.deps.submitTurn.handle(
      {
        workspace,
        target: { address: addressOf(from, to, callId) },
        content,
        caller: `agent/${from}`,
        idempotencyKey: callId,
      },
      [...turn.chain, hop],
    );
    const ref = { workspace, sessionId: submitted.sessionId, turnId: submitted.turnId };
    return answerOf(to, await this.waitForOutcome(call, ref));
  }

  private async waitForOutcome(call: NativeCall, ref: TurnRef): Promise<TurnOutcome> {
    const { signal, timeoutMs } = call;
    const either = timeoutMs === null ? signal : AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    try {
      await this.deps.turnEnds.waitForEnd(ref, either);
    } catch (error) {
      const isCancelled =
        signal.aborted && signal.reason instanceof Stopped && signal.reason.reason === 'cancelled';
      if (isCancelled || !signal.aborted) await this.cancel(ref, actorOf(call).caller);
      if (!signal.aborted)
        throw withCause('TOOL.TIMEOUT', { kind: 'agent_answers_late', timeoutMs: timeoutMs ?? 0 });
      throw error;
    }
    return readOutcome(this.deps.store, ref);
  }

  private async cancel(
    ref: Omit<TurnRef, 'turnId'> & { readonly turnId?: string },
    caller: string,
  ): Promise<void> {
    await this.deps.cancelTurn
      .handle({ ...ref, caller })
      .catch((error: unknown) => this.deps.logger.warn({ err: error }, 'asked turn not cancelled'));
  }
}

/** Creates an error whose cause is recorded, and not the text of it. */
const withCause = (code: string, cause: Cause): AppError => causedError(rejected, code, cause);

/** Returns the answer of an asked turn. Throws its failure: that of a circle ends every turn of it. */
const answerOf = (agentId: string, outcome: TurnOutcome): string => {
  if (outcome.kind === 'completed') return outcome.text;
  if (outcome.kind === 'cancelled')
    throw withCause('TURN.CANCELLED', { kind: 'agent_turn_cancelled', agentId });
  const { code, cause } = outcome;
  throw withCause(code, code === HANDOVER_LOOP ? cause : { kind: 'agent_failed', agentId, why: cause });
};
