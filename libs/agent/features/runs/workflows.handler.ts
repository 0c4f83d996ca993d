import type {
  WorkflowDefinition,
  WorkflowEvent,
  WorkflowView,
  deleteWorkflow,
  saveWorkflow,
  validateWorkflow,
} from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { workflowDecider } from '@antiphon/agent-domain';
import type { ValidationResult, WorkflowCommand, WorkflowState } from '@antiphon/agent-domain';
import { isoTime, notFound } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import { digestOf } from '../derived-ids.js';
import type { WorkflowServices } from './workflow-services.js';
import { workflowView } from './workflow-view.js';
import { judge, orderOf } from './judge-definition.js';
import { parseDefinition } from './parse-definition.js';

export type SaveWorkflowRequest = z.output<typeof saveWorkflow.request>;
type ValidateRequest = z.output<typeof validateWorkflow.request>;
type DeleteRequest = z.output<typeof deleteWorkflow.request>;

/** What may be done with definitions. */
export interface ManageWorkflows {
  save(request: SaveWorkflowRequest): Promise<WorkflowView>;
  validate(request: ValidateRequest): Promise<WorkflowView>;
  remove(request: DeleteRequest): Promise<{ deleted: boolean }>;
}

/** Decides commands one after another, each on what the ones before it left. */
const decideAll = (state: WorkflowState, commands: readonly WorkflowCommand[]): WorkflowEvent[] => {
  const events: WorkflowEvent[] = [];
  let next = state;
  for (const command of commands) {
    const decided = workflowDecider.decide(command, next);
    events.push(...decided);
    next = decided.reduce(workflowDecider.evolve, next);
  }
  return events;
};

const claimOf = (
  { caller, workflowId, idempotencyKey: key }: SaveWorkflowRequest,
  digest: string,
  id: string,
) =>
  key === undefined
    ? {}
    : {
        idempotency: {
          scope: `${caller}/workflow.save${workflowId === undefined ? '' : `/${workflowId}`}`,
          key,
          digest,
          response: { workflowId: id },
        },
      };

/** Makes the use cases behind `cmd.agent.workflow.save`, `.validate` and `.delete`. */
export const createManageWorkflows = (services: WorkflowServices): ManageWorkflows => {
  const { config, clock, ids, workflows } = services;

  const verdictOn = (
    { draft }: SaveWorkflowRequest,
    definition: WorkflowDefinition,
  ): ValidationResult | null => (draft ? null : { order: orderOf(config, definition) });

  const save = async (request: SaveWorkflowRequest): Promise<WorkflowView> => {
    const definition = parseDefinition(request.source);
    const verdict = verdictOn(request, definition);
    const workflowId = request.workflowId ?? ids.next();
    const digest = digestOf({ definition: definition as unknown as JsonObject, draft: request.draft });
    const committed = await workflows.commit(request.workspace, workflowId, ({ state, version }) => {
      if (request.workflowId !== undefined && version === 0)
        throw notFound('WORKFLOW.NOT_FOUND', 'there is no workflow with this id');
      const now = isoTime(clock);
      const commands: WorkflowCommand[] = [{ type: 'SaveWorkflow', data: { workflowId, definition }, now }];
      if (verdict) commands.push({ type: 'ValidateWorkflow', data: { result: verdict }, now });
      return { events: decideAll(state, commands), ...claimOf(request, digest, workflowId) };
    });
    if (!committed.joined) return workflowView(committed.state);
    const first = await workflows.read(request.workspace, String(committed.joined['workflowId']));
    return workflowView(first.state);
  };

  const validate = async ({ workspace, workflowId }: ValidateRequest): Promise<WorkflowView> => {
    const { state } = await workflows.commit(workspace, workflowId, ({ state: before }) => {
      const { definition } = workflowView(before);
      const data = { result: judge(config, definition) };
      return { events: decideAll(before, [{ type: 'ValidateWorkflow', data, now: isoTime(clock) }]) };
    });
    return workflowView(state);
  };

  const remove = async ({ workspace, workflowId }: DeleteRequest): Promise<{ deleted: boolean }> => {
    await workflows.commit(workspace, workflowId, ({ state }) => ({
      events: decideAll(state, [{ type: 'DeleteWorkflow', data: {}, now: isoTime(clock) }]),
    }));
    return { deleted: true };
  };

  return { save, validate, remove };
};
