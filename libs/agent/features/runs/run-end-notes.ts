import { workflowStream } from '@antiphon/contracts/agent';
import type { RunEvent } from '@antiphon/contracts/agent';
import type { RunState } from '@antiphon/agent-domain';
import type { StreamAppend } from '@antiphon/event-store';
import { isoTime } from '@antiphon/kernel';
import { toNewEvent } from './run-streams.js';
import type { WorkflowServices } from './workflow-services.js';

const STATUS = { RunCompleted: 'completed', RunFailed: 'failed', RunCancelled: 'cancelled' } as const;
const isEnd = (type: string): type is keyof typeof STATUS => type in STATUS;

/**
 * What the workflow's own event stream says when a run ends, in the same append. Without a check of its version: a run
 * begins in that stream and ends exactly once, whatever else happens to the workflow meanwhile.
 */
export const runEndNotes = (
  { ids, clock }: Pick<WorkflowServices, 'ids' | 'clock'>,
  { started }: RunState,
  events: readonly RunEvent[],
): StreamAppend[] => {
  const end = events.map(({ type }) => type).find(isEnd);
  const workflowId = started?.workflowId ?? null;
  if (end === undefined || workflowId === null) return [];
  const data = { workflowId, runId: started?.runId ?? '', status: STATUS[end], endedAt: isoTime(clock) };
  const event = { type: 'WorkflowRunEnded', schemaVersion: 1, data };
  return [{ streamId: workflowStream(workflowId), expectedVersion: 'any', events: [toNewEvent(event, ids)] }];
};
