import type { LogEvent } from '@antiphon/client';
import type { Fields } from '../../data/read-fields.js';
import { withMessage } from '../../data/read-fields.js';
import type { TaskSpec } from './create-dialog.js';

const dataOf = (event: LogEvent | undefined): Fields => (event?.data ?? {}) as Fields;

/** One claim of a task and how it ended. */
export interface Attempt {
  readonly epoch: number;
  readonly worker: string;
  readonly startedAt: string;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  /** Null while it runs. */
  readonly end: { readonly reason: string; readonly message: string | null; readonly at: string } | null;
}

const textOrNull = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

/** Returns the attempts of a task from its events, oldest first. */
export const attemptsOf = (events: readonly LogEvent[]): Attempt[] => {
  const attempts = new Map<number, Attempt>();
  const change = (epoch: number, fields: Partial<Attempt>): void => {
    const known = attempts.get(epoch);
    if (known) attempts.set(epoch, { ...known, ...fields });
  };
  for (const event of events) {
    const data = dataOf(event);
    const [epoch, at] = [Number(data['epoch'] ?? 0), String(data['at'] ?? '')];
    const message = textOrNull((withMessage(event.data as object) as Fields)['message']);
    if (event.type === 'TaskAssigned')
      attempts.set(epoch, {
        ...{ epoch, worker: String(data['worker']), startedAt: at, sessionId: null, turnId: null, end: null },
      });
    else if (event.type === 'TaskBegun')
      change(epoch, { sessionId: textOrNull(data['sessionId']), turnId: textOrNull(data['turnId']) });
    else if (event.type === 'TaskRequeued')
      change(epoch, {
        end: { reason: String(data['reason']), message: message ?? textOrNull(data['code']), at },
      });
    else if (event.type === 'TaskEnded')
      change(epoch, { end: { reason: String(data['status']), message, at } });
  }
  return [...attempts.values()];
};

/** Returns the prompt of a task from its events; null if its first event was archived. */
export const promptOf = (events: readonly LogEvent[]): string | null =>
  textOrNull(dataOf(events.find(({ type }) => type === 'TaskQueued'))['prompt']);

/** Returns the specification of a task, for a new task that does the same. It names no origin. */
export const specOfTask = (events: readonly LogEvent[]): Partial<TaskSpec> | null => {
  const queued = events.find(({ type }) => type === 'TaskQueued');
  if (!queued) return null;
  const { prompt, title, priority, capabilities, executor, agentId, project, parentTaskId, retry, budget } =
    dataOf(queued) as Record<string, never>;
  return {
    ...{ prompt, title, priority, capabilities, worker: executor },
    ...(agentId !== null && { agent: agentId }),
    ...(project !== null && { project }),
    ...(parentTaskId !== null && { parentTask: parentTaskId }),
    ...(budget !== null && { budget }),
    retry,
  };
};
