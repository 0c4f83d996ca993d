import type { Cause } from '@antiphon/contracts/causes';
import type { ToolDeferral, ToolOutcome, TurnToolCall } from '@antiphon/conversation-domain';
import type { EventStore } from '@antiphon/event-store';
import { bug, createBatcher, failpoint, isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type { NativeToolPort } from '../tools/native-tool.port.js';
import { isNativeTool, mayCall } from '../tools/tool-schemas.js';
import { recordedOutcome } from './recorded-tools.js';
import type { StepContext, StepOf } from './step-context.js';
import type { Claim, ToolCallContext, ToolCaller } from './tool-call.js';
import type { ToolRetries } from './tool-retry.js';
import { decisionOn } from '../approvals/approval-rules.js';
import type { ToolCatalog } from './tool-catalog.js';
import { observeTool } from './turn-telemetry.js';

/** Number of calls of one step that run concurrently. */
const PARALLEL_CALLS = 8;

/** Result of one attempt of a call. */
export type ToolResult = ToolOutcome | ToolDeferral;

export interface RunToolsDeps {
  readonly caller: ToolCaller;
  readonly nativeTools: NativeToolPort;
  readonly tools: Pick<ToolCatalog, 'known'>;
  readonly retries: ToolRetries;
  readonly store: EventStore;
  readonly clock: Clock;
}

/** Refuses a tool that the agent was not given, and a call that its policy denies. */
const refusalOf = (
  { agent, actor }: StepContext,
  turnId: string,
  { callId, name, input }: TurnToolCall,
  tools: Pick<ToolCatalog, 'known'>,
): ToolOutcome | null => {
  const refuse = (code: string, cause: Cause): ToolOutcome => ({
    ...{ type: 'ToolCallFailed', data: { turnId, callId, code, cause } },
  });
  if (!agent || !mayCall(agent, name)) return refuse('TOOL.UNKNOWN', { kind: 'tool_unknown', name });
  const description = tools.known(actor.workspace, name);
  const decided = decisionOn(agent, { tool: name, input, description });
  if (decided.decision !== 'deny') return null;
  return refuse('TOOL.DENIED', { kind: 'tool_denied_by_rule', name, rule: decided.rule });
};

/** A call without effects records nothing before its outcome. */
const refuseRecord = (): Promise<never> =>
  Promise.reject(bug('TOOL.RECORDED_EARLY', 'a call recorded a fact before its request was committed'));

type CallerContext = Pick<StepContext, 'actor' | 'signal' | 'confirmLease'>;

const callContext = ({ actor, signal, confirmLease }: CallerContext): ToolCallContext => ({
  ...{ actor, signal, confirmClaim: confirmLease },
  epoch: () => actor.lease.held()?.epoch ?? 0,
});

/** Runs the tool calls of a step. */
export class ToolRunner {
  constructor(private readonly deps: RunToolsDeps) {}

  /**
   * Runs the calls concurrently and records their claims and outcomes as they arrive: those of one
   * event-loop round in one append. The first error ends it, once the outcomes before it are
   * recorded. A native tool may have recorded its outcome itself, with the facts of its effect.
   */
  async run(context: StepContext, { turnId, calls }: StepOf<'run_tools'>): Promise<void> {
    const waiting = [...calls];
    const { fork } = context.actor.fold().state;
    // A claim is recorded unless the turn is cancelled by then: the fold shows which calls are
    // claimed.
    const claim = createBatcher((callIds: readonly string[]) =>
      context.record({ type: 'ClaimTools', data: { turnId, callIds }, now: this.now() }),
    );
    const recordResult = createBatcher((outcomes: readonly ToolResult[]) =>
      context.record({ type: 'RecordToolOutcomes', data: { outcomes }, now: this.now() }),
    );
    const worker = async (): Promise<void> => {
      for (let call = waiting.shift(); call; call = waiting.shift()) {
        let isRecorded = false;
        const onRecorded = (): void => void (isRecorded = true);
        const result =
          fork?.purpose === 'whatif'
            ? await recordedOutcome(this.deps.store, context.actor, fork, turnId, call)
            : await this.callTool(context, turnId, call, { claim, onRecorded });
        await context.failpoint('agent.tool.answered');
        if (!isRecorded) await recordResult(result);
      }
    };
    const workers = Array.from({ length: Math.min(PARALLEL_CALLS, calls.length) }, worker);
    for (const end of await Promise.allSettled(workers)) if (end.status === 'rejected') throw end.reason;
  }

  /** Makes one attempt of a call without effects whose request is being committed (`EarlyTools`). */
  runEarly(context: CallerContext, turnId: string, call: TurnToolCall): Promise<ToolResult> {
    const early = { ...callContext(context), isRequestCommitted: false };
    return observeTool(call, () =>
      isNativeTool(call.name)
        ? this.deps.nativeTools.run({ ...context, record: refuseRecord }, call)
        : this.deps.caller.call(early, turnId, call, refuseRecord),
    );
  }

  /** Cancels calls that another process may still have in flight, also those of native tools. */
  async abandon(context: StepContext, calls: readonly TurnToolCall[]): Promise<void> {
    for (const { callId, deferred } of calls) if (deferred) this.deps.caller.cancel(context, callId);
    await this.abandonNative(context, calls);
  }

  async abandonNative(context: StepContext, calls: readonly TurnToolCall[]): Promise<void> {
    for (const call of calls) if (isNativeTool(call.name)) await this.deps.nativeTools.abandon(context, call);
  }

  async scheduleRetries({ actor }: StepContext, { calls }: StepOf<'await_tools'>): Promise<void> {
    const { workspace, sessionId } = actor;
    const agentId = actor.fold().state.started?.agentId ?? '';
    for (const { callId } of calls) this.deps.retries.schedule({ workspace, sessionId, callId, agentId });
  }

  private async callTool(
    context: StepContext,
    turnId: string,
    call: TurnToolCall,
    { claim, onRecorded }: { readonly claim: Claim; readonly onRecorded: () => void },
  ): Promise<ToolResult> {
    const refusal = refusalOf(context, turnId, call, this.deps.tools);
    if (refusal) return refusal;
    const { workspace, sessionId } = context.actor;
    await failpoint(
      'work.tool.begun',
      () => `${workspace} ${sessionId} ${context.agent?.id ?? ''} ${call.name}`,
    );
    const early = await context.takeEarlyTool(call.callId);
    if (early) return early;
    return observeTool(call, () =>
      isNativeTool(call.name)
        ? this.deps.nativeTools.run(context, call, onRecorded)
        : this.deps.caller.call(callContext(context), turnId, call, claim),
    );
  }

  private now(): string {
    return isoTime(this.deps.clock);
  }
}
