import { textCause } from '@antiphon/contracts/causes';
import { Controller, Inject } from '@nestjs/common';
import type { Clock } from '@antiphon/kernel';
import { CLOCK, LEASE_STORE } from '@antiphon/service-host';
import { OpenTasks } from './open-tasks.js';
import { TaskStreams } from './task-streams.js';
import { claimTask, finishTask, renewTask, taskLease } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { isClaimedTask } from '@antiphon/orchestration-domain';
import type { TaskFold } from '@antiphon/orchestration-domain';
import { claimOf } from '@antiphon/event-store';
import type { LeaseAttempt, LeaseStore } from '@antiphon/event-store';
import { conflict, forbidden, isAppError, toStorable } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { OpenTask } from './task-queues.js';
import { taskNotFound, taskItem } from './task-view.js';

/** Life of the claim of an external worker that is not renewed, ms. */
export const CLAIM_MS = 6_000;
/** Maximum number of tasks that one request tries to claim: other workers may be faster. */
const MAX_TRIES = 50;
/** Time for which a task is left to the process that claims it, ms. */
const CONTENDED_MS = 1_000;

type ClaimReply = z.output<typeof claimTask.reply>;
type ClaimRequest = z.output<typeof claimTask.request>;

interface Claim {
  readonly workspace: string;
  readonly taskId: string;
  readonly epoch: number;
}

const claimLost = (): Error =>
  conflict('TASK.CLAIM_LOST', 'the claim has ended: the task is with another worker, or has ended');

const isCurrent = (state: TaskFold, epoch: number, worker: string): boolean =>
  isClaimedTask(state) && state.epoch === epoch && state.worker === worker;

/** Handles the requests of external workers: claim, renew, finish. No model is involved. */
@Controller()
export class ExternalClaims {
  constructor(
    @Inject(TaskStreams) private readonly tasks: TaskStreams,
    @Inject(OpenTasks) private readonly open: OpenTasks,
    @Inject(LEASE_STORE) private readonly leases: LeaseStore,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  @HandleRequest(claimTask)
  async claimTask(request: ClaimRequest): Promise<ClaimReply> {
    const { workspace, capabilities, idempotencyKey } = request;
    // A worker is a program of its own. The key of an agent does not reach tasks of others.
    if (request.actor.agentId !== null)
      throw forbidden('AGENT.NOT_ALLOWED', 'the key of an agent may not claim tasks of external workers');
    const { open } = this;
    const able = new Set(capabilities);
    let isFresh = idempotencyKey !== undefined;
    if (isFresh) {
      await open.catchUp();
      open.queues.releaseDue(this.clock.now());
      const known = this.findByKey(request);
      if (known) return { claim: await this.repeat(request, known) };
    }
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const task = open.queues.pickForWorker(workspace, able);
      if (task) {
        const claim = await this.tryClaim(task, request);
        if (claim) return { claim };
      } else if (isFresh) break;
      else {
        await open.catchUp();
        open.queues.releaseDue(this.clock.now());
        isFresh = true;
      }
    }
    return { claim: null };
  }

  @HandleRequest(renewTask)
  async renewTask({ workspace, taskId, epoch, actor }: z.output<typeof renewTask.request>) {
    const attempt = await this.holdLease({ workspace, taskId, epoch });
    if (!attempt.acquired) throw claimLost();
    // Read after the lease was extended: no other process can end the claim from here on.
    const { state } = await this.tasks.read(workspace, taskId);
    if (isCurrent(state, epoch, actor.caller)) return { leaseMs: CLAIM_MS };
    await this.leases.release(attempt.lease);
    throw state.status === 'new' ? taskNotFound() : claimLost();
  }

  @HandleRequest(finishTask)
  async finishTask(request: z.output<typeof finishTask.request>) {
    const { workspace, taskId, epoch, outcome, actor } = request;
    const { tasks, open } = this;
    const { state: before } = await tasks.read(workspace, taskId);
    if (before.status === 'new' || before.queued?.executor !== 'external') throw taskNotFound();
    const text = toStorable(request.text);
    const code = request.code === undefined ? null : toStorable(request.code);
    const reported = text === '' ? code : text;
    const cause = reported === null ? null : textCause(reported);
    const { state, version, events } = await tasks.finish(
      workspace,
      taskId,
      { epoch, worker: actor.caller },
      { outcome, text, code, cause },
    );
    open.put({ workspace, taskId, state, version });
    const isRefused = events.some(({ type }) => type === 'TaskResultRefused');
    const isRepeat =
      state.epoch === epoch && state.worker === actor.caller && state.result?.status === outcome;
    if (isRefused || (events.length === 0 && !isRepeat)) throw claimLost();
    if (state.status === 'queued') await this.freeLease({ workspace, taskId, epoch });
    return { task: taskItem(state) };
  }

  /** Claims a picked task. Returns null if another worker has it. */
  private async tryClaim(task: OpenTask, request: ClaimRequest): Promise<ClaimReply['claim']> {
    const { open, tasks } = this;
    const { workspace, taskId, state } = task;
    const epoch = state.epoch + 1;
    const { caller: worker } = request.actor;
    const { idempotencyKey: claimKey, capabilities } = request;
    const scope = `${worker}/task.claim`;
    try {
      // The lease comes first: a claim without one would be taken for lost.
      const { acquired } = await this.holdLease({ workspace, taskId, epoch });
      if (!acquired) {
        open.queues.delay(taskId, this.clock.now() + CONTENDED_MS);
        return null;
      }
      const assigned = { epoch, worker, agentId: null, stolen: false, ...(claimKey ? { claimKey } : {}) };
      const committed = await tasks.commit(
        workspace,
        taskId,
        (_, now) => [
          { type: 'AssignTask', data: assigned, now },
          { type: 'BeginTask', data: { epoch, sessionId: null, turnId: null }, now },
        ],
        { idempotency: claimOf(scope, claimKey, { capabilities }, { taskId, epoch }) },
      );
      if (committed.joined) {
        await this.freeLease({ workspace, taskId, epoch });
        open.queues.delay(taskId, 0);
        return await this.repeat(request, committed.joined as unknown as Omit<Claim, 'workspace'>);
      }
      open.put({ workspace, taskId, state: committed.state, version: committed.version });
      const prompt = committed.state.queued?.prompt ?? '';
      return { task: taskItem(committed.state), prompt, epoch, leaseMs: CLAIM_MS };
    } catch (error) {
      open.queues.delay(taskId, this.clock.now() + CONTENDED_MS);
      if (isAppError(error) && error.code === 'TASK.CLAIMED') return null;
      throw error;
    }
  }

  /** Returns the claim that a request with this key got, if this process knows of it. */
  private findByKey({ workspace, actor, idempotencyKey }: ClaimRequest): Omit<Claim, 'workspace'> | null {
    const task = this.open.queues
      .claimed()
      .find(
        (known) =>
          known.workspace === workspace &&
          known.state.worker === actor.caller &&
          known.state.claimKey === idempotencyKey,
      );
    return task ? { taskId: task.taskId, epoch: task.state.epoch } : null;
  }

  /** Returns a claim again to the worker that has it. Throws `TASK.CLAIM_LOST`. */
  private async repeat(
    { workspace, actor }: ClaimRequest,
    { taskId, epoch }: Omit<Claim, 'workspace'>,
  ): Promise<ClaimReply['claim']> {
    await this.renewTask({ workspace, taskId, epoch, actor });
    const { state } = await this.tasks.read(workspace, taskId);
    return { task: taskItem(state), prompt: state.queued?.prompt ?? '', epoch, leaseMs: CLAIM_MS };
  }

  /** Takes or extends the lease of a claim, unless another process has ended the claim. */
  private holdLease({ workspace, taskId, epoch }: Claim): Promise<LeaseAttempt> {
    return this.leases.acquire(workspace, taskLease(taskId), `claim/${taskId}/${epoch}`, CLAIM_MS);
  }

  private async freeLease(claim: Claim): Promise<void> {
    const attempt = await this.holdLease(claim);
    if (attempt.acquired) await this.leases.release(attempt.lease);
  }
}
