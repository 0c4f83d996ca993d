import type { LogEvent } from '@antiphon/client';

/** Events of failures that a person may have to act on. */
const FAILURES: ReadonlySet<string> = new Set([
  ...['AgentFailed', 'AgentUnresponsive', 'TurnFailed', 'TaskFailed', 'RunFailed'],
]);

/** Tells whether an event is a failure of an agent, a turn, a task, a node or a run. */
export const isFailure = ({ type, data }: Pick<LogEvent, 'type' | 'data'>): boolean =>
  FAILURES.has(type) ||
  // A task of the queue has one event for every end.
  (type === 'TaskEnded' && (data as { readonly status?: unknown } | null)?.status === 'failed');
