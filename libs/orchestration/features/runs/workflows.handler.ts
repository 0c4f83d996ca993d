import { causeOf } from '@antiphon/contracts/causes';
import { Controller, Inject } from '@nestjs/common';
import { CLOCK, CONFIG, IDS } from '@antiphon/service-host';
import { WORKFLOW_STREAMS } from './run-streams.js';
import { deleteWorkflow, saveWorkflow, validateWorkflow } from '@antiphon/contracts/agent';
import type { WorkflowDefinition, WorkflowEvent, WorkflowView } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { workflowDecider } from '@antiphon/orchestration-domain';
import type { ValidationResult, WorkflowCommand, WorkflowState } from '@antiphon/orchestration-domain';
import { workspaceConfig, type AntiphonConfig } from '@antiphon/config';
import { claimOf } from '@antiphon/event-store';
import { isAppError, isoTime, notFound } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { orderOf } from './parse-definition.js';
import { parseInThread } from './parse-in-thread.js';
import { workflowView } from './run-queries.handler.js';
import type { WorkflowStreams } from './run-streams.js';

type SaveWorkflowRequest = z.output<typeof saveWorkflow.request>;
type ValidateRequest = z.output<typeof validateWorkflow.request>;
type DeleteRequest = z.output<typeof deleteWorkflow.request>;

/** Decides commands one after another, each on the state after the previous ones. */
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

/** Checks a saved draft. Returns a broken rule as a result instead of an error. */
const validateDraft = (config: AntiphonConfig, definition: WorkflowDefinition): ValidationResult => {
  try {
    return { order: orderOf(config, definition) };
  } catch (error) {
    if (!isAppError(error) || error.kind !== 'rejected') throw error;
    return { code: error.code, cause: causeOf(error) };
  }
};

/** Saves, validates and deletes workflow definitions. */
@Controller()
export class Workflows {
  constructor(
    @Inject(WORKFLOW_STREAMS) private readonly workflows: WorkflowStreams,
    @Inject(CONFIG) private readonly config: AntiphonConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(IDS) private readonly ids: Ids,
  ) {}

  /** Saves a definition. Unless it is a draft, a broken rule rejects the request. */
  @HandleRequest(saveWorkflow)
  async save(request: SaveWorkflowRequest): Promise<WorkflowView> {
    const { clock, ids, workflows } = this;
    const config = workspaceConfig(this.config, request.workspace);
    const definition = await parseInThread(request.workspace, request.source);
    const result = request.draft ? null : { order: orderOf(config, definition) };
    const workflowId = request.workflowId ?? ids.next();
    const { caller, idempotencyKey: key, draft } = request;
    const scope = `${caller}${request.workflowId === undefined ? '' : `/${workflowId}`}/workflow.save`;
    const idempotency = claimOf(scope, key, { definition, draft }, { workflowId });
    const committed = await workflows.commit(request.workspace, workflowId, ({ state, version }) => {
      if (request.workflowId !== undefined && version === 0)
        throw notFound('WORKFLOW.NOT_FOUND', 'there is no workflow with this id');
      const now = isoTime(clock);
      const expected = request.workflowId === undefined ? undefined : request.version;
      const data = { workflowId, definition, ...(expected === undefined ? {} : { expected }) };
      const commands: WorkflowCommand[] = [{ type: 'SaveWorkflow', data, now }];
      if (result) commands.push({ type: 'ValidateWorkflow', data: { result }, now });
      return { events: decideAll(state, commands), idempotency };
    });
    if (!committed.joined) return workflowView(committed.state);
    const first = await workflows.read(request.workspace, String(committed.joined['workflowId']));
    return workflowView(first.state);
  }

  @HandleRequest(validateWorkflow)
  async validate({ workspace, workflowId }: ValidateRequest): Promise<WorkflowView> {
    const { clock, workflows } = this;
    const config = workspaceConfig(this.config, workspace);
    const { state } = await workflows.commit(workspace, workflowId, ({ state: before }) => {
      const { definition } = workflowView(before);
      const data = { result: validateDraft(config, definition) };
      return { events: decideAll(before, [{ type: 'ValidateWorkflow', data, now: isoTime(clock) }]) };
    });
    return workflowView(state);
  }

  @HandleRequest(deleteWorkflow)
  async remove({ workspace, workflowId }: DeleteRequest): Promise<{ deleted: boolean }> {
    const { clock, workflows } = this;
    await workflows.commit(workspace, workflowId, ({ state }) => ({
      events: decideAll(state, [{ type: 'DeleteWorkflow', data: {}, now: isoTime(clock) }]),
    }));
    return { deleted: true };
  }
}
