import type { ToolDeferral, ToolOutcome, TurnToolCall } from '@antiphon/agent-domain';
import { createBatcher } from '@antiphon/kernel';
import { asToolCallContext, makeToolCall } from './tool-call.js';
import { recordedOutcome } from './recorded-tools.js';
import { observeTool } from './turn-telemetry.js';
import type { StepContext } from './step-context.js';

/** Calls of one step that run at the same time. */
const PARALLEL_CALLS = 8;

/** Only the tools that the agent was given exist for it, whatever the model asks for. */
const refusal = (
  { agent }: StepContext,
  turnId: string,
  { callId, name }: TurnToolCall,
): ToolOutcome | null =>
  agent?.tools.includes(name)
    ? null
    : {
        type: 'ToolCallFailed',
        data: { turnId, callId, code: 'TOOL.UNKNOWN', message: `there is no tool "${name}" for this agent` },
      };

/** How a try of a call ends. */
export type ToolEnd = ToolOutcome | ToolDeferral;

/** What a step's calls leave in the log. */
export interface ToolRecords {
  /** Claims calls of a turn, unless it is cancelled by then: the fold says which are claimed after this. */
  readonly claim: (callIds: readonly string[]) => Promise<void>;
  readonly outcomes: (outcomes: readonly ToolEnd[]) => Promise<void>;
}

/**
 * Runs the calls of a step side by side and records their claims and outcomes as they come: those that arrive together
 * in one append. The first error ends it, once what had arrived is recorded.
 */
export const runTools = async (
  work: StepContext,
  turnId: string,
  calls: readonly TurnToolCall[],
  records: ToolRecords,
): Promise<void> => {
  const waiting = [...calls];
  const { fork } = work.actor.fold().state;
  const claim = createBatcher(records.claim);
  const record = createBatcher(records.outcomes);

  const callOnAndOn = async (): Promise<void> => {
    for (let call = waiting.shift(); call; call = waiting.shift()) {
      const toMake = call;
      const outcome =
        fork?.purpose === 'whatif'
          ? await recordedOutcome(work, fork, turnId, toMake)
          : (refusal(work, turnId, toMake) ??
            (await observeTool(toMake, () => makeToolCall(asToolCallContext(work), turnId, toMake, claim))));
      await work.services.failpoint('agent.tool.answered', work.actor.sessionId);
      await record(outcome);
    }
  };
  const ends = await Promise.allSettled(
    Array.from({ length: Math.min(PARALLEL_CALLS, calls.length) }, callOnAndOn),
  );
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
};
