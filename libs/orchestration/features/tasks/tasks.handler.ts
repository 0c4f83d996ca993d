import { causedError } from '@antiphon/contracts/causes';
import { Controller, Inject } from '@nestjs/common';
import type { Ids } from '@antiphon/kernel';
import type { PastReads } from '@antiphon/event-store';
import { IDS } from '@antiphon/service-host';
import { KnownAgents } from './task-agents.js';
import { MAX_OPEN_TASKS, OpenTasks } from './open-tasks.js';
import { DEFAULT_TASK_RETRY, cancelTask, createTask, getTask, listTasks } from '@antiphon/contracts/agent';
import type { AgentActor, TaskItem } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { isOpenTask, taskDecider } from '@antiphon/orchestration-domain';
import type { TaskQueuedData } from '@antiphon/orchestration-domain';
import { claimOf } from '@antiphon/event-store';
import { clipText, exhausted, notFound, rejected, toStorable } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { isInSubtree, requireRights, AgentDirectory, PAST_READS } from '@antiphon/agents-features';
import { WaitReasons } from './wait-reasons.js';
import { readIfKept, TaskStreams } from './task-streams.js';
import { countTasks, taskNotFound, readRetryOf, readTaskRow, readTasks, taskItem } from './task-view.js';

/** Time after which a caller may try a full queue again, s. */
const RETRY_AFTER_S = 5;
const MAX_TITLE = 120;

type CreateTaskRequest = z.output<typeof createTask.request>;
type TaskReply = { readonly task: TaskItem };

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Returns whether an id is `<runId>/<nodeId>`. Throws `TASK.NOT_FOUND` for an id of no kind. */
const isNode = (id: string): boolean => {
  if (id.includes('/')) return true;
  if (!UUID.test(id)) throw taskNotFound();
  return false;
};

const titleOf = (prompt: string): string => {
  const [line = ''] = prompt.trim().split('\n');
  return clipText(line === '' ? 'task' : line, MAX_TITLE);
};

/** Handles the requests of clients and agents for tasks. */
@Controller()
export class Tasks {
  /** Accepted tasks that this process's fold does not have yet, by workspace. */
  private readonly accepting = new Map<string, number>();

  constructor(
    @Inject(TaskStreams) private readonly tasks: TaskStreams,
    @Inject(OpenTasks) private readonly open: OpenTasks,
    @Inject(KnownAgents) private readonly agents: KnownAgents,
    @Inject(AgentDirectory) private readonly directory: AgentDirectory,
    @Inject(PAST_READS) private readonly past: PastReads,
    @Inject(MAX_OPEN_TASKS) private readonly maxOpenTasks: number,
    @Inject(IDS) private readonly ids: Ids,
    @Inject(WaitReasons) private readonly waits: WaitReasons,
  ) {}

  @HandleRequest(createTask)
  async createTask(request: CreateTaskRequest): Promise<TaskReply> {
    const { workspace, spec, actor } = request;
    const { ids, tasks, open, agents, directory } = this;
    // An agent delegates to its descendants, or by capabilities to agents that it may turn to.
    await requireRights(directory, workspace, actor, spec.agent ?? actor.agentId);
    if (spec.agent !== undefined && !(await agents.isLiving(workspace, spec.agent)))
      throw causedError(notFound, 'AGENT.NOT_FOUND', { kind: 'no_living_agent', agentId: spec.agent });
    await this.requireParent(workspace, spec.parentTask);
    if (spec.retryOf !== undefined) await this.requireOrigin(workspace, spec.retryOf, actor);
    const taskId = ids.next();
    const scope = `${actor.caller}/task.create`;
    const idempotency = claimOf(scope, request.idempotencyKey, { spec }, { taskId });
    return this.counted(workspace, async () => {
      const data = this.toQueued(request, taskId);
      const committed = await tasks.commit(
        workspace,
        taskId,
        (_, now) => ({ type: 'QueueTask', data, now }),
        { known: { state: taskDecider.initialState(), version: 0 }, idempotency },
      );
      if (committed.joined) return this.getTask({ workspace, taskId: String(committed.joined['taskId']) });
      await open.catchUp();
      return { task: taskItem(committed.state) };
    });
  }

  /** Refuses a parent whose budget can no longer be read: it would limit nothing. */
  private async requireParent(workspace: string, parentTask: string | undefined): Promise<void> {
    if (parentTask === undefined || (await readIfKept(this.tasks.read(workspace, parentTask)))) return;
    throw causedError(rejected, 'TASK.PARENT_ARCHIVED', { kind: 'parent_task_archived' });
  }

  /** Requires an ended task that the actor may change. Throws `TASK.NOT_FOUND`, `TASK.NOT_ENDED`. */
  private async requireOrigin(workspace: string, taskId: string, actor: AgentActor): Promise<void> {
    await this.requireOwn(workspace, taskId, actor);
    const { state } = await this.tasks.read(workspace, taskId);
    if (!isOpenTask(state)) return;
    throw rejected('TASK.NOT_ENDED', 'the task that this one tries again has not ended');
  }

  @HandleRequest(getTask)
  async getTask({ workspace, taskId, at }: z.output<typeof getTask.request>): Promise<TaskReply> {
    const readRow = () =>
      this.past.readAsOf(workspace, at, async (queries) => ({
        task: await readTaskRow(queries, workspace, taskId),
      }));
    if (isNode(taskId)) return readRow();
    const read = this.past.readAt(at, async (upTo) => {
      const { state } = await this.tasks.read(workspace, taskId, upTo);
      const { retriedBy } = await this.past.readAsOf(workspace, undefined, (queries) =>
        readRetryOf(queries, { workspace, taskId, upTo }),
      );
      return { task: taskItem(state, retriedBy) };
    });
    const reply = (await readIfKept(read)) ?? (await readRow());
    return at === undefined ? this.withReason(workspace, reply) : reply;
  }

  private async withReason(workspace: string, reply: TaskReply): Promise<TaskReply> {
    const [task] = await this.waits.addTo(workspace, [reply.task]);
    return { ...reply, task: task ?? reply.task };
  }

  @HandleRequest(listTasks)
  async listTasks(query: z.output<typeof listTasks.request>): Promise<z.output<typeof listTasks.reply>> {
    const { workspace, at } = query;
    const page = await this.past.readAsOf(workspace, at, async (queries) => ({
      ...(await readTasks(queries, query)),
      ...(query.counts ? await countTasks(queries, query) : {}),
    }));
    // Of the past only the facts are known, not which agents were idle.
    return at === undefined ? { ...page, tasks: await this.waits.addTo(workspace, page.tasks) } : page;
  }

  /** Cancels a task. A repeated cancel, and one of an ended task, changes nothing. */
  @HandleRequest(cancelTask)
  async cancelTask({
    workspace,
    taskId,
    reason = undefined,
    actor,
  }: z.output<typeof cancelTask.request>): Promise<TaskReply> {
    if (isNode(taskId)) {
      await this.getTask({ workspace, taskId });
      throw rejected('TASK.PART_OF_RUN', 'this task is a node of a run. What to do: cancel the run');
    }
    // Only tasks that have ended are archived: there is nothing to cancel.
    if (!(await readIfKept(this.tasks.read(workspace, taskId)))) return this.getTask({ workspace, taskId });
    const data = { actor: actor.caller, reason: reason === undefined ? null : toStorable(reason) };
    await this.requireOwn(workspace, taskId, actor);
    const { state } = await this.tasks.commit(workspace, taskId, (before, now) => {
      if (before.status === 'new') throw taskNotFound();
      return { type: 'CancelTask', data, now };
    });
    return { task: taskItem(state) };
  }

  /**
   * Checks that an agent cancels only tasks of itself and its descendants. Throws `TASK.NOT_FOUND`.
   */
  private async requireOwn(workspace: string, taskId: string, actor: AgentActor): Promise<void> {
    const { directory, tasks } = this;
    const { state } = await tasks.read(workspace, taskId);
    if (state.status === 'new') throw taskNotFound();
    const { queued, agentId } = state;
    const { agentId: own } = actor;
    const delegator = queued?.parentAgentId ?? null;
    const isDelegator =
      own !== null && delegator !== null && (await isInSubtree(directory, workspace, delegator, own));
    await requireRights(
      directory,
      workspace,
      actor,
      isDelegator ? own : (agentId ?? queued?.agentId ?? null),
    );
  }

  /** Counts a task from its request on. Throws `TASK.QUEUE_FULL`. */
  private async counted<T>(workspace: string, accept: () => Promise<T>): Promise<T> {
    const accepting = this.accepting.get(workspace) ?? 0;
    if (this.open.queues.countOpen(workspace) + accepting >= this.maxOpenTasks)
      throw causedError(
        exhausted,
        'TASK.QUEUE_FULL',
        { kind: 'too_many_tasks' },
        { retryAfterSeconds: RETRY_AFTER_S },
      );
    this.accepting.set(workspace, accepting + 1);
    try {
      return await accept();
    } finally {
      const left = (this.accepting.get(workspace) ?? 1) - 1;
      if (left > 0) this.accepting.set(workspace, left);
      else this.accepting.delete(workspace);
    }
  }

  private toQueued({ spec, actor }: CreateTaskRequest, taskId: string): Omit<TaskQueuedData, 'at'> {
    const { prompt, deadline = null } = spec;
    return {
      taskId,
      title: toStorable(spec.title ?? titleOf(prompt)),
      prompt: toStorable(prompt),
      priority: spec.priority,
      capabilities: [...new Set(spec.capabilities)],
      executor: spec.worker,
      agentId: spec.agent ?? null,
      project: spec.project ?? null,
      parentAgentId: actor.agentId,
      parentTaskId: spec.parentTask ?? null,
      ...(spec.retryOf === undefined ? {} : { retryOf: spec.retryOf }),
      // In the form of every time of the log, so that times compare as texts.
      deadline: deadline === null ? null : new Date(deadline).toISOString(),
      retry: { ...DEFAULT_TASK_RETRY, ...spec.retry },
      budget: spec.budget ?? null,
      actor: actor.caller,
    };
  }
}
