import { z } from 'zod';
import type { MessagePart } from './chat-events.js';
import { SessionTurn } from './session-turns.js';

/** An event of a session or a run in its newest form, with its places. */
export const HistoryEvent = z.object({
  version: z.int().positive().describe('Version in the event stream of the session or the run.'),
  position: z.int().positive(),
  recordedAt: z.iso.datetime(),
  event: z.object({
    type: z.string(),
    schemaVersion: z.int().positive(),
    data: z.record(z.string(), z.json()),
  }),
});
export type HistoryEvent = z.infer<typeof HistoryEvent>;

/** Places of a part of a history, and how far it is complete. */
export const HISTORY_PLACES = {
  from: z.int().nonnegative().describe('Position of the snapshot.'),
  position: z
    .int()
    .nonnegative()
    .describe('Position up to which the events are complete. The next page begins there.'),
  head: z.int().nonnegative().describe('Position of the newest event of the log.'),
  isLast: z.boolean().describe('True if the events are complete up to the position that was asked for.'),
};

/** Turns of a session as of a position, and the events after it. */
export const SessionHistory = z.object({
  ...HISTORY_PLACES,
  snapshot: z.object({
    turns: z.array(SessionTurn).describe('The latest turns as of `from`, in the order of the log.'),
  }),
  events: z.array(HistoryEvent),
  deleted: z
    .array(z.object({ turnId: z.uuid(), part: z.enum(['message', 'answer']) }))
    .describe('Parts that persons deleted at any time: they are empty at each position.'),
});
export type SessionHistory = z.infer<typeof SessionHistory>;

/** Fields of events that hold text of a turn's parts. */
export const DELETED_FIELDS = {
  message: { TurnRequested: ['content', 'files'], ChatMessageEdited: ['content'] },
  answer: {
    ModelCallCompleted: ['text', 'thought', 'frames', 'toolCalls', 'providerState'],
    ModelCallAborted: ['text', 'thought', 'frames', 'message', 'cause'],
    ToolCallRequested: ['input'],
    ToolCallCompleted: ['content'],
    ToolCallFailed: ['message', 'cause'],
    ToolCallUnknown: ['message', 'cause'],
    ApprovalRequested: ['input', 'preview'],
    ApprovalGranted: ['reason', 'edited'],
    ApprovalDenied: ['reason', 'message', 'cause'],
    ApprovalExpired: ['message', 'cause'],
    ApprovalVoided: ['message', 'cause'],
    MessagesReceived: ['messages'],
    AnswerForwarded: ['text'],
    AnswerReturned: ['message', 'cause'],
    ChatMessageEdited: ['content'],
  },
} as const satisfies Record<MessagePart, Record<string, readonly string[]>>;

type Data = HistoryEvent['event']['data'];

const NO_CAUSE = { kind: 'text', text: '' };

const emptied = (value: Data[string]): Data[string] =>
  typeof value === 'string' ? '' : Array.isArray(value) ? [] : {};

/** Returns the data of an event without the texts of deleted parts. Pure. */
export const withoutDeletedTexts = (
  type: string,
  data: Data,
  deleted: readonly SessionHistory['deleted'][number][],
): Data => {
  const changed = { ...data };
  for (const { turnId, part } of deleted) {
    const isOther = type === 'ChatMessageEdited' && data['part'] !== part;
    if (data['turnId'] !== turnId || isOther) continue;
    const fields = (DELETED_FIELDS[part] as Record<string, readonly string[]>)[type] ?? [];
    for (const field of fields) {
      const value = changed[field];
      if (value !== undefined) changed[field] = field === 'cause' ? NO_CAUSE : emptied(value);
    }
  }
  return changed;
};

export { foldHistory } from './fold-turns.js';
