import { MAX_CONTENT_LENGTH } from '@antiphon/contracts/agent';
import { renderPrompt } from '@antiphon/agent-domain';
import type { RunCommand, RunState, TaskState } from '@antiphon/agent-domain';
import { isAppError, isoTime } from '@antiphon/kernel';
import type { Clock, ErrorKind } from '@antiphon/kernel';
import type { SubmitTurn, SubmitTurnReply } from '../turns/submit-turn.handler.js';

/** A turn that was accepted for a task, or the command that says why there is none. */
export type Begun =
  { readonly turn: SubmitTurnReply; readonly attempt: number } | { readonly refused: RunCommand };

/** Trying these again changes nothing; a queue that is full may empty. */
const FOR_GOOD: ReadonlySet<ErrorKind> = new Set(['invalid', 'not_found', 'rejected', 'forbidden']);

const promptOf = ({ tasks, started }: RunState, { node }: TaskState): string =>
  renderPrompt(node.prompt, {
    input: (name) => (Object.hasOwn(started?.inputs ?? {}, name) ? started?.inputs[name] : undefined),
    output: (nodeId) => tasks.get(nodeId)?.output ?? undefined,
  });

/** `run/<runId>/<nodeId>`, with the attempt from the second on: a retried activity joins the turn it had begun. */
const keyOf = (runId: string, nodeId: string, attempt: number): string =>
  attempt === 1 ? `run/${runId}/${nodeId}` : `run/${runId}/${nodeId}/${attempt}`;

const refuse = (clock: Clock, task: TaskState, code: string, message: string, retryable: boolean): Begun => ({
  refused: {
    type: 'FailTask',
    data: { nodeId: task.node.id, code, message, retryable },
    now: isoTime(clock),
  },
});

/** Submits the turn of a task that is ready, in a session of its own, once for each attempt. */
export const beginTask = async (
  { submitTurn, clock }: { readonly submitTurn: SubmitTurn; readonly clock: Clock },
  workspace: string,
  state: RunState,
  task: TaskState,
): Promise<Begun> => {
  const { id: nodeId, agent: agentId } = task.node;
  const runId = state.started?.runId ?? '';
  const attempt = task.failedAttempts + 1;
  const content = promptOf(state, task);
  if (content.length > MAX_CONTENT_LENGTH)
    return refuse(clock, task, 'TASK.PROMPT_TOO_LARGE', `its prompt has ${content.length} characters`, false);
  const peer = attempt === 1 ? nodeId : `${nodeId}/${attempt}`;
  try {
    const turn = await submitTurn({
      workspace,
      target: { address: { agentId, channel: 'run', account: runId, peer } },
      content,
      caller: 'run',
      idempotencyKey: keyOf(runId, nodeId, attempt),
    });
    return { turn, attempt };
  } catch (error) {
    if (!isAppError(error) || !FOR_GOOD.has(error.kind)) throw error;
    return refuse(clock, task, error.code, error.message, false);
  }
};
