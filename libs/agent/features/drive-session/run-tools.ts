import type { ToolOutcome, TurnToolCall } from '@antiphon/agent-domain';
import { makeToolCall } from './call-tool.js';
import { observeTool } from './turn-telemetry.js';
import type { Work } from './work.js';

/** Calls of one step that run at the same time. */
const PARALLEL_CALLS = 8;

/** Only the tools that the agent was given exist for it, whatever the model asks for. */
const refusal = ({ agent }: Work, turnId: string, { callId, name }: TurnToolCall): ToolOutcome | null =>
  agent?.tools.includes(name)
    ? null
    : {
        type: 'ToolCallFailed',
        data: { turnId, callId, code: 'TOOL.UNKNOWN', message: `there is no tool "${name}" for this agent` },
      };

/**
 * Runs the calls of a step side by side and records their outcomes as they come: those that arrive together in one
 * append. The first error ends it, once what had arrived is recorded.
 */
export const runTools = async (
  work: Work,
  turnId: string,
  calls: readonly TurnToolCall[],
  record: (outcomes: readonly ToolOutcome[]) => Promise<void>,
): Promise<void> => {
  const waiting = [...calls];
  let arrived: ToolOutcome[] = [];
  let recording: Promise<void> | null = null;

  const recordArrived = async (): Promise<void> => {
    while (arrived.length > 0) {
      // Whatever else this turn of the event loop brings comes along.
      await new Promise((resolve) => setImmediate(resolve));
      const outcomes = arrived;
      arrived = [];
      await record(outcomes);
    }
    recording = null;
  };
  const callOnAndOn = async (): Promise<void> => {
    for (let call = waiting.shift(); call; call = waiting.shift()) {
      const toMake = call;
      const outcome =
        refusal(work, turnId, toMake) ??
        (await observeTool(toMake, () => makeToolCall(work, turnId, toMake)));
      // `arrived` is another list by now if others were recorded meanwhile.
      arrived.push(outcome);
      await work.services.failpoint('agent.tool.answered', work.lane.sessionId);
      await (recording ??= recordArrived());
    }
  };
  const ends = await Promise.allSettled(
    Array.from({ length: Math.min(PARALLEL_CALLS, calls.length) }, callOnAndOn),
  );
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
};
