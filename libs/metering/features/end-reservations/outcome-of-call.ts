import type { SessionEventOf } from '@antiphon/contracts/agent';
import type { CallOutcome } from '@antiphon/contracts/metering';

export type CallEnd = SessionEventOf<'ModelCallCompleted' | 'ModelCallAborted'>;

/** What the end of a model attempt means for its reservation. */
export const outcomeOfCall = (event: CallEnd): CallOutcome => {
  if (event.type === 'ModelCallCompleted') return { kind: 'used', ...event.data.usage };
  const { dispatched, reason, usage } = event.data;
  if (!dispatched) return { kind: 'not_dispatched', reason };
  // A provider that said what it used is believed, also for a call that failed.
  return usage === null ? { kind: 'unknown' } : { kind: 'used', ...usage };
};
