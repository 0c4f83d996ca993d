import type { TaskEvent } from '@antiphon/contracts/agent';
import {
  type CheckRun,
  type EventPlace,
  type Finding,
  open,
  type Parsed,
  violation,
} from '../audit-check.js';
import type { TaskCheck } from '../audit-check.js';

type DataOf<T extends TaskEvent['type']> = Extract<TaskEvent, { type: T }>['data'];

class TaskRun implements CheckRun<Parsed<TaskEvent>> {
  private queued: { readonly data: DataOf<'TaskQueued'>; readonly at: EventPlace } | null = null;
  /** Number of claims so far. */
  private epoch = 0;
  private hasClaim = false;
  private hasBegun = false;
  private isCancelRequested = false;
  private strikes = 0;
  private hasEnded = false;
  private tasks = 0;

  see({ place: at, content }: Parsed<TaskEvent>): Finding[] {
    const { type, data } = content;
    const isOwn = at.streamId === `task-${data.taskId}`;
    const foreign = isOwn ? [] : [violation(at, `${type} names task ${data.taskId}`)];
    if (type === 'TaskQueued') return [...foreign, ...this.queue(data, at)];
    if (!this.queued) return [...foreign, violation(at, `${type} of a task that was not queued`)];
    // Evidence of a late result may follow the end.
    if (this.hasEnded && type !== 'TaskResultRefused')
      return [...foreign, violation(at, `${type} came after the end of the task`)];
    return [...foreign, ...this.move(content, at)];
  }

  end(): Finding[] {
    return this.queued && !this.hasEnded ? [open(this.queued.at, 'the task has not ended')] : [];
  }

  count(): number {
    return this.tasks;
  }

  private queue(data: DataOf<'TaskQueued'>, at: EventPlace): Finding[] {
    if (this.queued) return [violation(at, `task ${data.taskId} was queued twice`)];
    this.queued = { data, at };
    this.tasks++;
    return [];
  }

  private move({ type, data }: TaskEvent, at: EventPlace): Finding[] {
    switch (type) {
      case 'TaskAssigned':
        return this.assign(data, at);
      case 'TaskBegun':
        return this.begin(data.epoch, at);
      case 'TaskRequeued':
        return this.requeue(data, at);
      case 'TaskResultRefused':
        return this.refuse(data.epoch, at);
      case 'TaskCancelRequested':
        this.isCancelRequested = true;
        return [];
      case 'TaskEnded':
        return this.finish(data, at);
      default:
        return [];
    }
  }

  private assign({ epoch }: DataOf<'TaskAssigned'>, at: EventPlace): Finding[] {
    const findings = this.hasClaim ? [violation(at, `claim ${epoch} began while another was open`)] : [];
    if (epoch !== this.epoch + 1) findings.push(violation(at, `claim ${epoch} follows ${this.epoch}`));
    this.epoch = epoch;
    this.hasClaim = true;
    this.hasBegun = false;
    return findings;
  }

  private begin(epoch: number, at: EventPlace): Finding[] {
    const findings = this.requireClaim('TaskBegun', epoch, at);
    if (this.hasBegun) findings.push(violation(at, `work of claim ${epoch} began twice`));
    this.hasBegun = true;
    return findings;
  }

  private requeue({ epoch, reason }: DataOf<'TaskRequeued'>, at: EventPlace): Finding[] {
    const findings = this.requireClaim('TaskRequeued', epoch, at);
    this.hasClaim = false;
    if (reason !== 'failed') return findings;
    this.strikes++;
    // The last strike ends the task.
    return [...findings, ...this.checkStrikes(this.strikes + 1, at)];
  }

  private refuse(epoch: number, at: EventPlace): Finding[] {
    const isCurrent = this.hasClaim && !this.hasEnded && epoch === this.epoch;
    return isCurrent || epoch > this.epoch
      ? [violation(at, `the result of claim ${epoch} was refused; it is not older than ${this.epoch}`)]
      : [];
  }

  private finish({ epoch, status, strikes }: DataOf<'TaskEnded'>, at: EventPlace): Finding[] {
    this.hasEnded = true;
    const findings =
      epoch === null
        ? this.checkUnclaimedEnd(status, at)
        : this.requireClaim(`TaskEnded (${status})`, epoch, at);
    if (status === 'cancelled' && !this.isCancelRequested)
      findings.push(violation(at, 'the task was cancelled without a request'));
    if (strikes.length < this.strikes || strikes.length > this.strikes + 1)
      findings.push(violation(at, `the end names ${strikes.length} strikes, its events ${this.strikes}`));
    return [...findings, ...this.checkStrikes(strikes.length, at)];
  }

  private checkUnclaimedEnd(status: string, at: EventPlace): Finding[] {
    if (this.hasClaim) return [violation(at, `the task ended next to its claim ${this.epoch}`)];
    return status === 'completed' ? [violation(at, 'the task was completed without a claim')] : [];
  }

  private checkStrikes(strikes: number, at: EventPlace): Finding[] {
    const limit = this.queued?.data.retry.strikes ?? 0;
    return strikes > limit ? [violation(at, `the task has ${strikes} strikes, of ${limit} allowed`)] : [];
  }

  private requireClaim(event: string, epoch: number, at: EventPlace): Finding[] {
    return this.hasClaim && epoch === this.epoch
      ? []
      : [violation(at, `${event} by claim ${epoch}; the newest is ${this.epoch}`)];
  }
}

/** Checks the claims and the one end of a task, for each `task-` stream. */
export const tasksEndOnce: TaskCheck = {
  name: 'tasks-end-once',
  about:
    'every task of the queue has one claim at a time, ends at most once and by its newest claim, within its strikes',
  counts: 'tasks',
  start: () => new TaskRun(),
};
