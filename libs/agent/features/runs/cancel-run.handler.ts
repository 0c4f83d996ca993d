import type { cancelRun } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { runDecider } from '@antiphon/agent-domain';
import type { RunState } from '@antiphon/agent-domain';
import { failpoint, isoTime } from '@antiphon/kernel';
import type { CancelTurn } from '../turns/cancel-turn.handler.js';
import { runEndNotes } from './run-end-notes.js';
import type { WorkflowServices } from './workflow-services.js';
import { runView } from './run-view.js';

export type CancelRunRequest = z.output<typeof cancelRun.request>;
export type CancelRunReply = z.output<typeof cancelRun.reply>;
export type CancelRun = (request: CancelRunRequest) => Promise<CancelRunReply>;

/** Cancels the turns that tasks of a run wait for; a turn that has ended is none. */
export const cancelTurnsOf = async (
  cancelTurn: CancelTurn,
  workspace: string,
  { tasks, started }: RunState,
): Promise<void> => {
  const caller = `run/${started?.runId ?? ''}`;
  const cancels = [...tasks.values()].flatMap(({ status, sessionId, turnId }) =>
    status === 'running' && sessionId !== null && turnId !== null
      ? [cancelTurn({ workspace, sessionId, turnId, caller })]
      : [],
  );
  await Promise.all(cancels);
};

/**
 * Makes the use case behind `cmd.agent.run.cancel`: the wish is a fact, then the turns at work are cancelled; their
 * ends end the tasks, and so the run. Whoever dies in between leaves it to the reconciler.
 */
export const createCancelRun =
  (services: WorkflowServices, cancelTurn: CancelTurn): CancelRun =>
  async ({ workspace, runId }) => {
    let wasOpen = false;
    const { state } = await services.runs.commit(workspace, runId, ({ state: before }) => {
      const { status } = runView(before);
      wasOpen = status === 'running' || status === 'cancelling';
      const now = isoTime(services.clock);
      const events = runDecider.decide({ type: 'CancelRun', data: {}, now }, before);
      return { events, also: runEndNotes(services, before, events) };
    });
    await failpoint('agent.run.cancelled');
    await cancelTurnsOf(cancelTurn, workspace, state);
    return { cancelled: wasOpen, status: runView(state).status };
  };
