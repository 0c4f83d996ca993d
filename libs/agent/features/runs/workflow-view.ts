import type { WorkflowView } from '@antiphon/contracts/agent';
import type { WorkflowState } from '@antiphon/agent-domain';
import { notFound } from '@antiphon/kernel';

/** A workflow as the outside sees it. Throws `WORKFLOW.NOT_FOUND`. */
export const workflowView = (state: WorkflowState): WorkflowView => {
  const { status, definition } = state;
  if (status === 'new' || status === 'deleted' || definition === null)
    throw notFound('WORKFLOW.NOT_FOUND', 'there is no workflow with this id');
  return {
    id: state.workflowId,
    name: definition.name,
    status,
    version: state.version,
    nodes: definition.nodes.length,
    updatedAt: state.updatedAt,
    definition,
    order: [...state.order],
    problem: state.problem,
    lastRunId: state.lastRunId,
  };
};
