import type { SessionEventOf } from '@antiphon/contracts/agent';
import type { CallOutcome } from '@antiphon/contracts/metering';

export type CallEnd = SessionEventOf<'ModelCallCompleted' | 'ModelCallAborted'>;

/** What the end of a model attempt means for its reservation. */
export const outcomeOfCall = (event: CallEnd): CallOutcome => {
  if (event.type === 'ModelCallCompleted') return { kind: 'used', ...event.data.usage };
  // A provider that said what it used is believed, even for a call that failed.
  if (event.data.usage !== null) return { kind: 'used', ...event.data.usage };
  return event.data.dispatched ? { kind: 'unknown' } : { kind: 'not_dispatched', reason: event.data.reason };
};
