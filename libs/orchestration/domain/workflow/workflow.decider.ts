import { textOf } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import type { WorkflowDefinition, WorkflowEvent } from '@antiphon/contracts/agent';
import { assertNever, conflict, notFound, rejected } from '@antiphon/kernel';
import type { Decider } from '@antiphon/kernel';

const schemaVersion = 1;

export interface WorkflowState {
  readonly status: 'new' | 'draft' | 'validating' | 'ready' | 'running' | 'completed' | 'failed' | 'deleted';
  readonly workflowId: string;
  readonly version: number;
  readonly definition: WorkflowDefinition | null;
  readonly order: readonly string[];
  readonly problem: { readonly code: string; readonly message: string } | null;
  readonly openRuns: readonly string[];
  readonly lastRunId: string | null;
  readonly updatedAt: string;
}

interface Command<T extends string, Data> {
  readonly type: T;
  readonly data: Data;
  /** ISO 8601, UTC. */
  readonly now: string;
}
/** Outcome of checking a definition: an order of the nodes, or an error. */
export type ValidationResult =
  { readonly order: readonly string[] } | { readonly code: string; readonly cause: Cause };
export type SaveWorkflow = Command<
  'SaveWorkflow',
  {
    readonly workflowId: string;
    readonly definition: WorkflowDefinition;
    /** Version that was edited. A save over another one is rejected, unless it has this definition. */
    readonly expected?: number;
  }
>;
export type ValidateWorkflow = Command<'ValidateWorkflow', { readonly result: ValidationResult }>;
export type NoteRunStarted = Command<'NoteRunStarted', { readonly runId: string }>;
export type NoteRunEnded = Command<
  'NoteRunEnded',
  { readonly runId: string; readonly status: 'completed' | 'failed' | 'cancelled' }
>;
export type DeleteWorkflow = Command<'DeleteWorkflow', Record<string, never>>;
export type WorkflowCommand =
  SaveWorkflow | ValidateWorkflow | NoteRunStarted | NoteRunEnded | DeleteWorkflow;

const initialState = (): WorkflowState => ({
  status: 'new',
  workflowId: '',
  version: 0,
  definition: null,
  order: [],
  problem: null,
  openRuns: [],
  lastRunId: null,
  updatedAt: '',
});

const requireExisting = ({ status }: WorkflowState): void => {
  if (status === 'new' || status === 'deleted')
    throw notFound('WORKFLOW.NOT_FOUND', 'there is no workflow with this id');
};
const requireIdle = ({ openRuns }: WorkflowState): void => {
  if (openRuns.length > 0)
    throw conflict(
      'WORKFLOW.RUNNING',
      `a run of this workflow is open: ${openRuns[0]}. What to do: cancel it or wait for its end`,
    );
};

const save = ({ data, now }: SaveWorkflow, state: WorkflowState): WorkflowEvent[] => {
  if (state.status === 'deleted') requireExisting(state);
  const { workflowId, definition, expected = state.version } = data;
  if (expected !== state.version && JSON.stringify(definition) !== JSON.stringify(state.definition))
    throw conflict(
      'WORKFLOW.VERSION_CONFLICT',
      `version ${expected} was edited, and version ${state.version} has been saved since. ` +
        'What to do: read it, and save on top of it or as a new workflow',
      { data: { version: state.version } },
    );
  const saved = { workflowId, version: state.version + 1, definition, savedAt: now };
  return [{ type: 'WorkflowSaved', schemaVersion, data: saved }];
};

const validate = ({ data: { result }, now }: ValidateWorkflow, state: WorkflowState): WorkflowEvent[] => {
  requireExisting(state);
  const known = { workflowId: state.workflowId, version: state.version };
  const started = {
    type: 'WorkflowValidationStarted',
    schemaVersion,
    data: { ...known, startedAt: now },
  } as const;
  if ('order' in result) {
    const data = { ...known, order: [...result.order], validatedAt: now };
    return [started, { type: 'WorkflowValidated', schemaVersion, data }];
  }
  const { code, cause } = result;
  return [
    started,
    { type: 'WorkflowRefused', schemaVersion: 2, data: { ...known, code, cause, refusedAt: now } },
  ];
};

const noteRunStarted = ({ data, now }: NoteRunStarted, state: WorkflowState): WorkflowEvent[] => {
  requireExisting(state);
  if (state.status === 'draft' || state.status === 'validating')
    throw rejected('WORKFLOW.NOT_READY', 'the workflow is a draft: validate it first');
  const started = { workflowId: state.workflowId, ...data, startedAt: now };
  return [{ type: 'WorkflowRunStarted', schemaVersion, data: started }];
};

const noteRunEnded = ({ data, now }: NoteRunEnded, state: WorkflowState): WorkflowEvent[] =>
  state.openRuns.includes(data.runId)
    ? [
        {
          type: 'WorkflowRunEnded',
          schemaVersion,
          data: { workflowId: state.workflowId, ...data, endedAt: now },
        },
      ]
    : [];

const remove = ({ now }: DeleteWorkflow, state: WorkflowState): WorkflowEvent[] => {
  requireExisting(state);
  requireIdle(state);
  return [{ type: 'WorkflowDeleted', schemaVersion, data: { workflowId: state.workflowId, deletedAt: now } }];
};

const decide = (command: WorkflowCommand, state: WorkflowState): WorkflowEvent[] => {
  switch (command.type) {
    case 'SaveWorkflow':
      return save(command, state);
    case 'ValidateWorkflow':
      return validate(command, state);
    case 'NoteRunStarted':
      return noteRunStarted(command, state);
    case 'NoteRunEnded':
      return noteRunEnded(command, state);
    case 'DeleteWorkflow':
      return remove(command, state);
    default:
      return assertNever(command);
  }
};

const withRun = (state: WorkflowState, runId: string, updatedAt: string): WorkflowState => {
  const openRuns = [...state.openRuns, runId];
  return { ...state, status: 'running', openRuns, lastRunId: runId, updatedAt };
};

const afterRun = (state: WorkflowState, runId: string, status: string): WorkflowState => {
  const openRuns = state.openRuns.filter((open) => open !== runId);
  if (openRuns.length > 0) return { ...state, openRuns };
  // A definition that was saved during its runs has a status of its own.
  if (state.status !== 'running') return { ...state, openRuns };
  return { ...state, openRuns, status: status === 'completed' ? 'completed' : 'failed' };
};

const evolve = (state: WorkflowState, event: WorkflowEvent): WorkflowState => {
  switch (event.type) {
    case 'WorkflowSaved': {
      const { workflowId, version, definition, savedAt } = event.data;
      const drafted = { workflowId, version, definition, order: [], problem: null, updatedAt: savedAt };
      return { ...state, ...drafted, status: 'draft' };
    }
    case 'WorkflowValidationStarted':
      return { ...state, status: 'validating' };
    case 'WorkflowValidated': {
      const { order, validatedAt: updatedAt } = event.data;
      const status = state.openRuns.length > 0 ? 'running' : 'ready';
      return { ...state, status, order, problem: null, updatedAt };
    }
    case 'WorkflowRefused': {
      const { code, cause, refusedAt: updatedAt } = event.data;
      return { ...state, status: 'draft', order: [], problem: { code, message: textOf(cause) }, updatedAt };
    }
    case 'WorkflowRunStarted':
      return withRun(state, event.data.runId, event.data.startedAt);
    case 'WorkflowRunEnded':
      return { ...afterRun(state, event.data.runId, event.data.status), updatedAt: event.data.endedAt };
    case 'WorkflowDeleted':
      return { ...state, status: 'deleted', updatedAt: event.data.deletedAt };
    default:
      return state;
  }
};

/**
 * Decides the commands of a workflow: draft → validating → ready → running → completed or failed.
 * Each save returns it to draft.
 */
export const workflowDecider: Decider<WorkflowState, WorkflowCommand, WorkflowEvent> = {
  initialState,
  decide,
  evolve,
};
