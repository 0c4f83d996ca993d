import type { RunEvent } from '@antiphon/contracts/agent';
import { open, violation } from '../audit-check.js';
import type { EventPlace, Finding, Parsed, RunCheck } from '../audit-check.js';

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

/** What each event makes of its task, and what the task may have been before. */
const MOVES: Readonly<Record<TaskEvent['type'], { from: readonly Status[]; to: Status }>> = {
  TaskReady: { from: ['waiting'], to: 'ready' },
  TaskStarted: { from: ['ready'], to: 'running' },
  // A turn that could not even be begun counts as an attempt.
  TaskAttemptFailed: { from: ['ready', 'running'], to: 'ready' },
  TaskCompleted: { from: ['running'], to: 'completed' },
  TaskFailed: { from: ['ready', 'running'], to: 'failed' },
  TaskCancelled: { from: ['ready', 'running'], to: 'cancelled' },
};
const ENDS: ReadonlySet<string> = new Set<RunEvent['type']>(['RunCompleted', 'RunFailed', 'RunCancelled']);

const isTaskEvent = (content: RunEvent): content is TaskEvent => content.type in MOVES;

/** One run as the audit follows it, sharing nothing with the service's own fold. */
const followRun = (started: EventOf<'RunStarted'>) => {
  const tasks = new Map<string, Task>(
    started.data.definition.nodes.map(({ id, needs, attempts }) => [
      id,
      { needs, attempts, status: 'waiting', attempt: 0 },
    ]),
  );
  const unmet = ({ needs }: Task): string[] => needs.filter((id) => tasks.get(id)?.status !== 'completed');

  const attemptOf = (task: Task, { type, data }: TaskEvent, at: EventPlace): Finding[] => {
    if (type !== 'TaskStarted') return [];
    const findings: Finding[] = [];
    if (data.attempt <= task.attempt)
      findings.push(violation(at, `attempt ${data.attempt} of ${data.nodeId} follows ${task.attempt}`));
    if (data.attempt > task.attempts)
      findings.push(
        violation(at, `${data.nodeId} was begun ${data.attempt} times, of ${task.attempts} allowed`),
      );
    task.attempt = data.attempt;
    return findings;
  };
  const move = (event: TaskEvent, at: EventPlace): Finding[] => {
    const { nodeId } = event.data;
    const task = tasks.get(nodeId);
    if (!task) return [violation(at, `${event.type} names ${nodeId}, which the definition does not have`)];
    const { from, to } = MOVES[event.type];
    const findings = from.includes(task.status)
      ? []
      : [violation(at, `${event.type} of ${nodeId}, which was ${task.status}`)];
    const missing = to === 'ready' || to === 'running' ? unmet(task) : [];
    if (missing.length > 0)
      findings.push(violation(at, `${event.type} of ${nodeId} before ${missing.join(', ')} had completed`));
    findings.push(...attemptOf(task, event, at));
    task.status = to;
    return findings;
  };
  const having = (...statuses: readonly Status[]): string[] =>
    [...tasks].filter(([, { status }]) => statuses.includes(status)).map(([id]) => id);
  return { move, having };
};
type FollowedRun = ReturnType<typeof followRun>;

const endOf = (run: FollowedRun, { type }: RunEvent, asked: boolean, at: EventPlace): Finding[] => {
  const atWork = run.having('ready', 'running');
  if (atWork.length > 0) return [violation(at, `${type} while ${atWork.join(', ')} had not ended`)];
  const undone = run.having('waiting', 'failed', 'cancelled');
  if (type === 'RunCompleted' && undone.length > 0)
    return [violation(at, `RunCompleted without ${undone.join(', ')}`)];
  if (type !== 'RunCompleted' && undone.length === 0)
    return [violation(at, `${type} of a run whose tasks have all completed`)];
  return type === 'RunCancelled' && !asked
    ? [violation(at, 'RunCancelled without having been asked for')]
    : [];
};

/** Started anew for each `run-` stream. */
export const runsFollowTheirGraph: RunCheck = {
  name: 'runs-follow-their-graph',
  about:
    'every task of a run begins after all that it needs, completes at most once, and nothing happens after the run’s one end',
  counts: 'runs',
  start: () => {
    let run: FollowedRun | null = null;
    let begunAt: EventPlace | undefined;
    let asked = false;
    let ended = false;
    let runs = 0;

    const begin = (event: EventOf<'RunStarted'>, at: EventPlace): Finding[] => {
      if (run) return [violation(at, `run ${event.data.runId} was started twice`)];
      run = followRun(event);
      begunAt = at;
      runs++;
      return [];
    };
    const see = ({ place: at, content }: Parsed<RunEvent>): Finding[] => {
      if (at.streamId !== `run-${content.data.runId}`)
        return [violation(at, `${content.type} names run ${content.data.runId}`)];
      if (content.type === 'RunStarted') return begin(content, at);
      if (!run) return [violation(at, `${content.type} of a run that was not started`)];
      if (ended) return [violation(at, `${content.type} came after the run's end`)];
      if (content.type === 'RunCancelRequested') asked = true;
      if (ENDS.has(content.type)) ended = true;
      if (isTaskEvent(content)) return run.move(content, at);
      return ended ? endOf(run, content, asked, at) : [];
    };
    return {
      see,
      end: () => (begunAt && !ended ? [open(begunAt, 'the run has not ended')] : []),
      count: () => runs,
    };
  },
};
