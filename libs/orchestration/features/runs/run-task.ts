import { causeOf } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import { MAX_CONTENT_BYTES } from '@antiphon/contracts/agent';
import type { RunProgress, RunRef, TaskResult } from '@antiphon/agent-workflows';
import { isOpenRun, openTasks, renderPrompt, runDecider } from '@antiphon/orchestration-domain';
import type { RunCommand, RunState, TaskState } from '@antiphon/orchestration-domain';
import { WorkTrials } from '@antiphon/database';
import type { WorkStarts } from '@antiphon/database';
import type { EventStore } from '@antiphon/event-store';
import { failpoint, isAppError, isoTime, notFound, transient } from '@antiphon/kernel';
import type { AppError, Clock, ErrorKind, Ids } from '@antiphon/kernel';
import { contextFrom, runWithContext } from '@antiphon/observability';
import type { TurnCommands, TurnEndWatcher, TurnOutcome, TurnRef } from '@antiphon/conversation-features';
import { readOutcome } from '@antiphon/conversation-features';
import { runEndAppends } from './run-streams.js';
import type { RunStreams } from './run-streams.js';

export interface RunTaskDeps {
  readonly runs: RunStreams;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly turns: TurnCommands;
  readonly turnEnds: Pick<TurnEndWatcher, 'waitForEnd'>;
  readonly starts: WorkStarts;
}

/** Error kinds that a retry does not change; a full queue, for example, may empty. */
const PERMANENT_ERRORS: ReadonlySet<ErrorKind> = new Set(['invalid', 'forbidden', 'not_found', 'rejected']);

/** Returns true for an error that a retry does not change. */
export const isPermanentError = (kind: ErrorKind): boolean => PERMANENT_ERRORS.has(kind);

/** Error codes of turns that a new turn may not meet again. */
const RETRYABLE_CODES =
  /^(PROVIDER\.(UNREACHABLE|TIMEOUT|ERROR|PROTOCOL)|TURN\.(DRIVER_LOST|DEPENDENCY_FAILED))$/;

export const progressOf = (state: RunState): RunProgress => ({
  todo: openTasks(state).map((nodeId) => ({ nodeId, agentId: state.tasks.get(nodeId)?.node.agent ?? '' })),
});

const isOver = (state: RunState, task: TaskState): boolean =>
  !isOpenRun(state) || (task.status !== 'ready' && task.status !== 'running');

const promptOf = ({ tasks, started }: RunState, { node }: TaskState): string =>
  renderPrompt(node.prompt, {
    input: (name) => (Object.hasOwn(started?.inputs ?? {}, name) ? started?.inputs[name] : undefined),
    output: (nodeId) => tasks.get(nodeId)?.output ?? undefined,
  });

/** Returns the idempotency key of a task's attempt, so that a repeated activity joins its turn. */
const turnKey = (runId: string, nodeId: string, attempt: number): string =>
  attempt === 1 ? `run/${runId}/${nodeId}` : `run/${runId}/${nodeId}/${attempt}`;

const toCommand = (nodeId: string, outcome: TurnOutcome, now: string): RunCommand => {
  switch (outcome.kind) {
    case 'completed':
      return { type: 'CompleteTask', data: { nodeId, output: outcome.text }, now };
    case 'cancelled':
      return { type: 'CancelTask', data: { nodeId }, now };
    case 'failed': {
      const { code, cause } = outcome;
      const data = { nodeId, code, cause, retryable: RETRYABLE_CODES.test(code) };
      return { type: 'FailTask', data, now };
    }
  }
};

/** Kind of the counted starts of tasks of runs. */
const NODE = 'run-node';
type NodeRef = RunRef & { readonly nodeId: string };

interface Attempt {
  readonly signal: AbortSignal;
  /** Ends the trial of the task. */
  readonly survive: () => Promise<void>;
}

/** Accepted turn of a task, or the command that records its refusal. */
type Submitted =
  | { readonly turn: Pick<TurnRef, 'sessionId' | 'turnId'>; readonly attempt: number }
  | { readonly refused: RunCommand };

/** Runs tasks of runs. Each task is a turn of its agent, in a session of its own. */
export class TaskRunner {
  private readonly trials: WorkTrials;

  constructor(private readonly deps: RunTaskDeps) {
    this.trials = new WorkTrials(deps.starts, { countsFirst: false });
  }

  /**
   * Runs one task to its end in the log. Safe to repeat: the turn has an idempotency key, and the
   * decider ignores repeated events. Throws `TASK.TRY_AGAIN` (transient) after a retryable failure.
   */
  async run(
    task: RunRef & { readonly nodeId: string },
    signal: AbortSignal,
    attempt = 1,
  ): Promise<TaskResult> {
    const begin = (survive: () => Promise<void>): Promise<TaskResult> => this.runOnce(task, signal, survive);
    const item = `${task.runId}/${task.nodeId}`;
    // An earlier attempt of the activity may have ended its process.
    if (attempt === 1) return this.trials.runFirst(NODE, item, begin);
    return this.trials.run(NODE, item, begin).catch((error: unknown) => {
      if (!isAppError(error) || error.code !== 'WORK.PROCESS_LOST') throw error;
      return this.fail(task, error);
    });
  }

  /** Releases the tasks of a process that stops in order, before their turns began. */
  release(): Promise<void> {
    return this.trials.release();
  }

  /** Fails a task without another attempt. */
  private async fail({ workspace, runId, nodeId }: NodeRef, error: AppError): Promise<TaskResult> {
    const data = { nodeId, code: error.code, cause: causeOf(error), retryable: false };
    const now = isoTime(this.deps.clock);
    const state = await this.record(workspace, runId, { type: 'FailTask', data, now });
    return { ...progressOf(state), sessionId: state.tasks.get(nodeId)?.sessionId ?? null };
  }

  private async runOnce(
    task: NodeRef,
    signal: AbortSignal,
    survive: () => Promise<void>,
  ): Promise<TaskResult> {
    await failpoint('work.node.begun', () => `${task.workspace} ${task.runId}/${task.nodeId}`);
    const { state, origin, version } = await this.deps.runs.read(task.workspace, task.runId);
    if (version === 0) throw notFound('RUN.NOT_FOUND', 'there is no run with this id');
    await failpoint('agent.task.claimed');
    // All work for a run has the correlation of the request that started it.
    return runWithContext(contextFrom('agent', origin), () => this.advance(task, state, { signal, survive }));
  }

  private async advance(ref: NodeRef, before: RunState, { signal, survive }: Attempt): Promise<TaskResult> {
    const taskIn = (state: RunState): TaskState => {
      const task = state.tasks.get(ref.nodeId);
      if (!task) throw notFound('TASK.NOT_FOUND', 'the run has no such task');
      return task;
    };
    let state = before;
    if (taskIn(state).status === 'ready') state = await this.start(ref.workspace, state, taskIn(state));
    // The turn counts the processes that it loses.
    if (taskIn(state).status === 'running') await survive();
    if (taskIn(state).status === 'running') state = await this.finish(ref, state, taskIn(state), signal);
    const task = taskIn(state);
    if (!isOver(state, task))
      throw transient('TASK.TRY_AGAIN', 'the turn failed with an error that a retry may not meet');
    return { ...progressOf(state), sessionId: task.sessionId };
  }

  /** Submits the task's turn and records it in the run. */
  private async start(workspace: string, state: RunState, task: TaskState): Promise<RunState> {
    const runId = state.started?.runId ?? '';
    const nodeId = task.node.id;
    const submitted = await this.submit(workspace, state, task);
    if ('refused' in submitted) return this.record(workspace, runId, submitted.refused);
    await failpoint('agent.task.submitted');
    const { sessionId, turnId } = submitted.turn;
    const data = { nodeId, attempt: submitted.attempt, sessionId, turnId };
    const now = isoTime(this.deps.clock);
    const after = await this.record(workspace, runId, { type: 'StartTask', data, now });
    await failpoint('agent.task.started');
    // The run was cancelled during the submission, and does not know of this turn.
    if (after.tasks.get(nodeId)?.status !== 'running') await this.cancel({ workspace, sessionId, turnId });
    return after;
  }

  /** Submits the turn of a ready task, once for each attempt. */
  private async submit(workspace: string, state: RunState, task: TaskState): Promise<Submitted> {
    const { id: nodeId, agent: agentId } = task.node;
    const runId = state.started?.runId ?? '';
    const attempt = task.failedAttempts + 1;
    const content = promptOf(state, task);
    // Measured as it is stored. A client's message is also limited by its frame.
    const bytes = Buffer.byteLength(JSON.stringify(content), 'utf8') - 2;
    if (bytes > MAX_CONTENT_BYTES)
      return this.refuse(nodeId, 'TASK.PROMPT_TOO_LARGE', { kind: 'prompt_too_large', bytes });
    const peer = attempt === 1 ? nodeId : `${nodeId}/${attempt}`;
    try {
      const turn = await this.deps.turns.submitTurn({
        workspace,
        target: { address: { agentId, channel: 'run', account: runId, peer } },
        content,
        caller: 'run',
        idempotencyKey: turnKey(runId, nodeId, attempt),
      });
      return { turn, attempt };
    } catch (error) {
      if (!isAppError(error) || !isPermanentError(error.kind)) throw error;
      return this.refuse(nodeId, error.code, causeOf(error));
    }
  }

  private refuse(nodeId: string, code: string, cause: Cause): Submitted {
    const data = { nodeId, code, cause, retryable: false };
    return { refused: { type: 'FailTask', data, now: isoTime(this.deps.clock) } };
  }

  /** Waits for the end of the task's turn and records its outcome. */
  private async finish(
    { workspace, runId }: RunRef,
    state: RunState,
    task: TaskState,
    signal: AbortSignal,
  ): Promise<RunState> {
    const turn = { workspace, sessionId: task.sessionId ?? '', turnId: task.turnId ?? '' };
    if (state.status === 'cancelling') await this.cancel(turn);
    await this.deps.turnEnds.waitForEnd(turn, signal);
    const outcome = await readOutcome(this.deps.store, turn);
    await failpoint('agent.task.answered');
    const now = isoTime(this.deps.clock);
    const after = await this.record(workspace, runId, toCommand(task.node.id, outcome, now));
    await failpoint('agent.task.recorded');
    return after;
  }

  private async record(workspace: string, runId: string, command: RunCommand): Promise<RunState> {
    const { state } = await this.deps.runs.commit(workspace, runId, ({ state: before }) => {
      const events = runDecider.decide(command, before);
      return { events, also: runEndAppends(this.deps, before, events) };
    });
    return state;
  }

  private async cancel(turn: TurnRef): Promise<void> {
    await this.deps.turns.cancelTurn({ ...turn, caller: 'run' });
  }
}
