import type { RunEvent } from '@antiphon/contracts/agent';
import { type CheckRun, type EventPlace, type Finding, open, type Parsed, violation } from './audit-check.js';
import type { RunCheck } from './audit-check.js';

type Status = 'waiting' | 'ready' | 'running' | 'completed' | 'failed' | 'cancelled';
type EventOf<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;
type TaskEvent = EventOf<
  'TaskReady' | 'TaskStarted' | 'TaskAttemptFailed' | 'TaskCompleted' | 'TaskFailed' | 'TaskCancelled'
>;

interface Task {
  readonly needs: readonly string[];
  readonly attempts: number;
  status: Status;
  attempt: number;
}

/** Allowed statuses of a task before each event, and its status after it. */
const MOVES: Readonly<Record<TaskEvent['type'], { from: readonly Status[]; to: Status }>> = {
  TaskReady: { from: ['waiting'], to: 'ready' },
  TaskStarted: { from: ['ready'], to: 'running' },
  // A turn that could not be started counts as an attempt.
  TaskAttemptFailed: { from: ['ready', 'running'], to: 'ready' },
  TaskCompleted: { from: ['running'], to: 'completed' },
  TaskFailed: { from: ['ready', 'running'], to: 'failed' },
  TaskCancelled: { from: ['ready', 'running'], to: 'cancelled' },
};
const ENDS: ReadonlySet<string> = new Set<RunEvent['type']>(['RunCompleted', 'RunFailed', 'RunCancelled']);

const isTaskEvent = (content: RunEvent): content is TaskEvent => content.type in MOVES;

/** The tasks of one run. Shares no code with the service's own fold. */
class RunTasks {
  private readonly tasks: ReadonlyMap<string, Task>;

  constructor({ data }: EventOf<'RunStarted'>) {
    this.tasks = new Map(
      data.definition.nodes.map(({ id, needs, attempts }) => [
        id,
        { needs, attempts, status: 'waiting', attempt: 0 },
      ]),
    );
  }

  move(event: TaskEvent, at: EventPlace): Finding[] {
    const { nodeId } = event.data;
    const task = this.tasks.get(nodeId);
    if (!task) return [violation(at, `${event.type} names ${nodeId}, which the definition does not have`)];
    const { from, to } = MOVES[event.type];
    const findings = from.includes(task.status)
      ? []
      : [violation(at, `${event.type} of ${nodeId}, which was ${task.status}`)];
    const missing = to === 'ready' || to === 'running' ? this.listUnmetNeeds(task) : [];
    if (missing.length > 0)
      findings.push(violation(at, `${event.type} of ${nodeId} before ${missing.join(', ')} had completed`));
    if (event.type === 'TaskStarted') findings.push(...this.startAttempt(task, event, at));
    task.status = to;
    return findings;
  }

  listByStatus(...statuses: readonly Status[]): string[] {
    return [...this.tasks].filter(([, { status }]) => statuses.includes(status)).map(([id]) => id);
  }

  private listUnmetNeeds({ needs }: Task): string[] {
    return needs.filter((id) => this.tasks.get(id)?.status !== 'completed');
  }

  private startAttempt(task: Task, { data }: EventOf<'TaskStarted'>, at: EventPlace): Finding[] {
    const { attempt, nodeId } = data;
    const findings: Finding[] = [];
    if (attempt <= task.attempt)
      findings.push(violation(at, `attempt ${attempt} of ${nodeId} follows ${task.attempt}`));
    if (attempt > task.attempts)
      findings.push(violation(at, `${nodeId} was started ${attempt} times, of ${task.attempts} allowed`));
    task.attempt = attempt;
    return findings;
  }
}

class GraphRun implements CheckRun<Parsed<RunEvent>> {
  private tasks: RunTasks | null = null;
  private startedAt: EventPlace | undefined;
  private isCancelRequested = false;
  private hasEnded = false;
  private runs = 0;

  see({ place: at, content }: Parsed<RunEvent>): Finding[] {
    if (at.streamId !== `run-${content.data.runId}`)
      return [violation(at, `${content.type} names run ${content.data.runId}`)];
    if (content.type === 'RunStarted') return this.start(content, at);
    if (!this.tasks) return [violation(at, `${content.type} of a run that was not started`)];
    if (this.hasEnded) return [violation(at, `${content.type} came after the run's end`)];
    if (content.type === 'RunCancelRequested') this.isCancelRequested = true;
    if (ENDS.has(content.type)) this.hasEnded = true;
    if (isTaskEvent(content)) return this.tasks.move(content, at);
    return this.hasEnded ? this.checkEnd(this.tasks, content, at) : [];
  }

  end(): Finding[] {
    return this.startedAt && !this.hasEnded ? [open(this.startedAt, 'the run has not ended')] : [];
  }

  count(): number {
    return this.runs;
  }

  private start(event: EventOf<'RunStarted'>, at: EventPlace): Finding[] {
    if (this.tasks) return [violation(at, `run ${event.data.runId} was started twice`)];
    this.tasks = new RunTasks(event);
    this.startedAt = at;
    this.runs++;
    return [];
  }

  private checkEnd(tasks: RunTasks, { type }: RunEvent, at: EventPlace): Finding[] {
    const active = tasks.listByStatus('ready', 'running');
    if (active.length > 0) return [violation(at, `${type} while ${active.join(', ')} had not ended`)];
    const incomplete = tasks.listByStatus('waiting', 'failed', 'cancelled');
    if (type === 'RunCompleted' && incomplete.length > 0)
      return [violation(at, `RunCompleted without ${incomplete.join(', ')}`)];
    if (type !== 'RunCompleted' && incomplete.length === 0)
      return [violation(at, `${type} of a run whose tasks have all completed`)];
    return type === 'RunCancelled' && !this.isCancelRequested
      ? [violation(at, 'RunCancelled without a request to cancel')]
      : [];
  }
}

/** Checks the order of tasks and the one end of a run, for each `run-` stream. */
export const runsFollowTheirGraph: RunCheck = {
  name: 'runs-follow-their-graph',
  about:
    'every task of a run starts after all tasks that it needs and completes at most once, and nothing follows the run’s one end',
  counts: 'runs',
  start: () => new GraphRun(),
};
