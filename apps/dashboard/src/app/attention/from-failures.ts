import type { LogEvent, RouteReply } from '@antiphon/client';
import { pageOf } from '../../data/event-pages.js';
import { isFailure } from '../../data/failures.js';
import { fieldsOf, textOf, withMessage, type Fields } from '../../data/read-fields.js';
import { wordsOfType } from '../../ui/format.js';
import type { AttentionItem } from './attention-items.js';

type Events = RouteReply<'readEvents'> | undefined;

/** Failures of the last day, and ends of tasks of the queue. */
export interface FailureReads {
  readonly failures?: Events;
  /** Failed tasks that other tasks try again: these are decided already. */
  readonly retried?: RouteReply<'listTasks'> | undefined;
}

/** Types of the events of failures. A task of the queue has one type for every end. */
export const FAILURE_TYPES = 'TurnFailed,ToolCallFailed,TaskFailed,RunFailed,TaskEnded';

/** Returns the code and the text of a failure. */
const causeOf = ({ data }: LogEvent): { readonly code: string; readonly text: string } => {
  const fields = (typeof data === 'object' && data !== null ? withMessage(data) : {}) as Fields;
  const failure = (fields['error'] ?? fields) as Fields;
  const [code, outer] = [textOf(failure['code']), textOf(fields['code'])];
  const text = textOf(failure['message']) || textOf(fields['message']) || textOf(fields['reason']);
  return { code: code || outer, text };
};

/** Returns what failures of one group have in common. A failure without a code has its text. */
const keyOf = (event: LogEvent): string => {
  const { code, text } = causeOf(event);
  return `${event.type} ${code === '' ? text : code}`;
};

const MAX_REASON = 300;

/** A task of the queue has one event for every end: this one is a failure. */
const nameOf = ({ type }: LogEvent): string => (type === 'TaskEnded' ? 'Task failed' : wordsOfType(type));

/** Returns the page that lists the failures of a group. */
const pageOfGroup = ({ type }: LogEvent): string =>
  type === 'TaskEnded' ? '/tasks?tab=failed' : `/events?severity=error&type=${type}`;

const toItem = (events: readonly LogEvent[], newest: LogEvent): AttentionItem => {
  const { code, text } = causeOf(newest);
  const isGroup = events.length > 1;
  return {
    ...{ id: `failure ${newest.position}`, tone: 'bad', cause: keyOf(newest) },
    title: isGroup ? `${events.length} × ${nameOf(newest)}${code === '' ? '' : `: ${code}`}` : nameOf(newest),
    reason: [isGroup ? '' : code, text]
      .filter((part) => part !== '')
      .join(': ')
      .slice(0, MAX_REASON),
    at: newest.recordedAt,
    to: isGroup ? pageOfGroup(newest) : pageOf(newest),
    ...{ action: isGroup ? 'Open all' : 'Open', isPast: true },
  };
};

const taskOf = ({ data }: LogEvent): string => textOf(fieldsOf(data)['taskId']);

/** Returns true if a task of the queue failed. */
export const hasFailedTask = ({ failures }: FailureReads): boolean =>
  failures?.events.some((event) => event.type === 'TaskEnded' && isFailure(event)) ?? false;

/** Returns one item for the failures with the same type and cause. Events are newest first. */
export const fromFailures = ({ failures, retried }: FailureReads): AttentionItem[] => {
  const decided = new Set(retried?.tasks.map(({ id }) => id));
  const groups = new Map<string, LogEvent[]>();
  for (const event of failures?.events ?? []) {
    if (event.type === 'TaskEnded' && (!isFailure(event) || decided.has(taskOf(event)))) continue;
    groups.set(keyOf(event), [...(groups.get(keyOf(event)) ?? []), event]);
  }
  return [...groups.values()].flatMap((events) => (events[0] ? [toItem(events, events[0])] : []));
};
