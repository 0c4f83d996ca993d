import type { LogEvent } from '@antiphon/client';
import { forkPointOf, type ForkPoint } from './fork-point.js';
import { editMessage, removeMessage } from './message-changes.js';
import { cutNote, lengthOf, numberOf, textOf, withMessage } from './read-fields.js';

/** Decision about a tool call, as the log has it. */
export interface ApprovalPart {
  readonly approvalId: string;
  readonly digest: string;
  readonly answerBy: string;
  readonly grants: readonly string[];
  /** Unified diff of the files that the call would change; null for other calls. */
  readonly preview: string | null;
  readonly expiresAt: string;
  readonly status: 'pending' | 'granted' | 'denied' | 'expired' | 'voided';
  readonly answeredBy: string | null;
  readonly reason: string | null;
}

export interface TextPart {
  readonly kind: 'text';
  readonly key: string;
  readonly text: string;
  readonly thought: string;
}
export interface ToolPart {
  readonly kind: 'tool';
  readonly key: string;
  readonly callId: string;
  readonly name: string;
  readonly input: unknown;
  readonly status: 'running' | 'pending' | 'completed' | 'failed' | 'denied' | 'unknown';
  readonly output: string | null;
  readonly durationMs: number | null;
  readonly approval: ApprovalPart | null;
}
/** Something that a reader has to know: a failed try, a returned answer, messages of other agents. */
export interface NotePart {
  readonly kind: 'note';
  readonly key: string;
  readonly text: string;
  readonly isBad: boolean;
}
/** The message of the person, or the answer of the agent. */
export type MessagePart = 'message' | 'answer';
export type Part = TextPart | ToolPart | NotePart;

export interface Turn {
  readonly turnId: string;
  readonly content: string;
  readonly requestedAt: string;
  readonly position: number;
  readonly version: number;
  /** Version of the session after the turn; null while it is open. A fork starts there. */
  readonly endVersion: number | null;
  /** Position of its last event; null while it is open. */
  readonly endPosition: number | null;
  readonly endedAt: string | null;
  readonly status: 'queued' | 'running' | 'completed' | 'failed' | 'cancelled';
  readonly parts: readonly Part[];
  /** Length of the text of ended model calls: frames have the rest. */
  readonly textLength: number;
  readonly model: string | null;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costMicroUsd: number;
  readonly cacheReadTokens: number;
  readonly isEstimated: boolean;
  /** True if a person changed the message. */
  readonly isEdited: boolean;
  /** Messages that a person deleted: their texts are gone from every view. */
  readonly deleted: readonly MessagePart[];
}

export interface Transcript {
  readonly agentId: string | null;
  readonly sessionKey: string | null;
  readonly startedAt: string | null;
  readonly forkedFrom: ForkPoint | null;
  readonly turns: readonly Turn[];
  /** Position of the last event that is folded in. */
  readonly position: number;
  readonly version: number;
}

export const EMPTY: Transcript = {
  agentId: null,
  sessionKey: null,
  startedAt: null,
  forkedFrom: null,
  turns: [],
  position: 0,
  version: 0,
};

interface Data extends Readonly<Record<string, unknown>> {
  readonly turnId?: string;
}

const changeTool = (turn: Turn, data: Data, change: Partial<ToolPart>): Turn => ({
  ...turn,
  parts: turn.parts.map((part) =>
    part.kind === 'tool' && part.callId === data['callId'] ? { ...part, ...change } : part,
  ),
});

const decide = (turn: Turn, data: Data, status: ApprovalPart['status']): Turn => ({
  ...turn,
  parts: turn.parts.map((part): Part => {
    if (part.kind !== 'tool' || part.callId !== data['callId'] || !part.approval) return part;
    const answeredBy = textOf(data['answeredByName']) || textOf(data['answeredBy']) || null;
    const approval = { ...part.approval, status, answeredBy, reason: textOf(data['reason']) || null };
    const output = status === 'granted' ? part.output : textOf(data['message']) || part.output;
    return { ...part, approval, output, status: status === 'granted' ? 'running' : 'denied' };
  }),
});

const addNote = (turn: Turn, key: string, note: string, isBad: boolean): Turn => ({
  ...turn,
  parts: [...turn.parts, { kind: 'note', key, text: note, isBad }],
});

const addCut = (turn: Turn, data: Data, { eventId }: LogEvent): Turn =>
  cutNote(data) ? addNote(turn, eventId, cutNote(data) as string, true) : turn;
const completeCall = (turn: Turn, data: Data, key: string): Turn => {
  const [said, thought] = [textOf(data['text']), textOf(data['thought'])];
  const usage = (data['usage'] ?? {}) as Data;
  const part: TextPart = { kind: 'text', key, text: said, thought };
  return {
    ...turn,
    parts: said === '' && thought === '' ? turn.parts : [...turn.parts, part],
    textLength: turn.textLength + said.length,
    model: textOf(data['model']) || turn.model,
    inputTokens: turn.inputTokens + numberOf(usage['inputTokens']),
    outputTokens: turn.outputTokens + numberOf(usage['outputTokens']),
    costMicroUsd: turn.costMicroUsd + numberOf(data['costMicroUsd']),
    cacheReadTokens: turn.cacheReadTokens + numberOf(usage['cacheReadTokens']),
    isEstimated: turn.isEstimated || usage['estimated'] === true,
  };
};

const requestTool = (turn: Turn, data: Data): Turn => {
  const callId = textOf(data['callId']);
  const approval: ApprovalPart | null =
    data['approvalId'] === undefined
      ? null
      : {
          approvalId: textOf(data['approvalId']),
          digest: textOf(data['digest']),
          answerBy: textOf(data['answerBy']),
          grants: (data['grants'] ?? []) as readonly string[],
          preview: textOf(data['preview']) || null,
          expiresAt: textOf(data['expiresAt']),
          status: 'pending',
          answeredBy: null,
          reason: null,
        };
  const known = turn.parts.some((part) => part.kind === 'tool' && part.callId === callId);
  // A call that waited for its approval is requested after it: one card shows both.
  if (known)
    return changeTool(turn, data, approval ? { approval, status: 'pending' } : { status: 'running' });
  const part: ToolPart = {
    kind: 'tool',
    key: callId,
    callId,
    name: textOf(data['name']),
    input: data['input'],
    status: approval ? 'pending' : 'running',
    output: null,
    durationMs: null,
    approval,
  };
  return { ...turn, parts: [...turn.parts, part] };
};

const end = (turn: Turn, event: LogEvent, status: Turn['status']): Turn => ({
  ...turn,
  status,
  endVersion: event.streamVersion,
  endPosition: event.position,
  endedAt: event.recordedAt,
});

/** Ends a turn with its reason. A last failed model call with the same one is left out. */
const failTurn = (turn: Turn, data: Data, event: LogEvent): Turn => {
  const [message, last] = [textOf(data['message']), turn.parts.at(-1)];
  const isSame = last?.kind === 'note' && last.text === `Model call failed: ${message}`;
  const ended = end(isSame ? { ...turn, parts: turn.parts.slice(0, -1) } : turn, event, 'failed');
  return addNote(ended, event.eventId, `${message} (${textOf(data['code'])})`, true);
};

type Change = (turn: Turn, data: Data, event: LogEvent) => Turn;

const CHANGES: Readonly<Record<string, Change>> = {
  ModelCallStarted: (turn, data) => ({ ...turn, status: 'running', model: textOf(data['model']) }),
  ModelCallCompleted: (turn, data, { eventId }) => completeCall(turn, data, eventId),
  ModelCallAborted: (turn, data, { eventId }) =>
    addNote(turn, eventId, `Model call failed: ${textOf(data['message'])}`, true),
  ToolCallRequested: (turn, data) => requestTool(turn, data),
  ApprovalRequested: (turn, data) => requestTool(turn, data),
  ApprovalGranted: (turn, data) => decide(turn, data, 'granted'),
  ApprovalDenied: (turn, data) => decide(turn, data, 'denied'),
  ApprovalExpired: (turn, data) => decide(turn, data, 'expired'),
  ApprovalVoided: (turn, data) => decide(turn, data, 'voided'),
  ToolCallCompleted: (turn, data) =>
    changeTool(turn, data, {
      status: data['isError'] === true ? 'failed' : 'completed',
      output: textOf(data['content']),
      durationMs: numberOf(data['durationMs']),
    }),
  ToolCallFailed: (turn, data) =>
    changeTool(turn, data, { status: 'failed', output: textOf(data['message']) }),
  ToolCallUnknown: (turn, data) =>
    changeTool(turn, data, { status: 'unknown', output: textOf(data['message']) }),
  AnswerForwarded: (turn, data, { eventId }) => ({
    ...turn,
    parts: [...turn.parts, { kind: 'text', key: eventId, text: textOf(data['text']), thought: '' }],
    textLength: turn.textLength + textOf(data['text']).length,
  }),
  AnswerReturned: (turn, data, { eventId }) => addNote(turn, eventId, textOf(data['message']), false),
  MessagesReceived: (turn, data, { eventId }) =>
    addNote(turn, eventId, `${lengthOf(data['messages'])} messages of other agents`, false),
  ChatMessageEdited: (turn, data) => editMessage(turn, data),
  ChatMessageDeleted: (turn, data) => removeMessage(turn, data['part'] === 'answer' ? 'answer' : 'message'),
  TurnCompleted: (turn, data, event) => end(addCut(turn, data, event), event, 'completed'),
  TurnCancelled: (turn, _, event) => end(turn, event, 'cancelled'),
  TurnFailed: failTurn,
};

const openTurn = (data: Data, { position, streamVersion, recordedAt }: LogEvent): Turn => ({
  turnId: textOf(data.turnId),
  content: textOf(data['content']),
  requestedAt: textOf(data['requestedAt']) || recordedAt,
  position,
  version: streamVersion,
  endVersion: null,
  endPosition: null,
  endedAt: null,
  status: 'queued',
  parts: [],
  textLength: 0,
  model: null,
  ...{ inputTokens: 0, outputTokens: 0, costMicroUsd: 0, cacheReadTokens: 0, isEstimated: false },
  isEdited: false,
  deleted: [],
});

const start = (before: Transcript, data: Data): Transcript => ({
  ...before,
  agentId: textOf(data['agentId']) || null,
  sessionKey: textOf(data['sessionKey']) || null,
  startedAt: textOf(data['startedAt']) || null,
});

/** Folds one event of a session into its transcript. Events must come in the order of the log. */
export const foldEvent = (before: Transcript, event: LogEvent): Transcript => {
  if (event.streamVersion <= before.version) return before;
  const data = withMessage((event.data ?? {}) as Data);
  const next = { ...before, position: event.position, version: event.streamVersion };
  if (event.type === 'SessionStarted') return start(next, data);
  if (event.type === 'SessionForked') return { ...next, forkedFrom: forkPointOf(data) };
  if (event.type === 'TurnRequested') return { ...next, turns: [...before.turns, openTurn(data, event)] };
  const change = Object.hasOwn(CHANGES, event.type) ? CHANGES[event.type] : undefined;
  if (!change) return next;
  const index = before.turns.findLastIndex(({ turnId }) => turnId === data.turnId);
  const turn = before.turns[index];
  return turn ? { ...next, turns: before.turns.with(index, change(turn, data, event)) } : next;
};

/** Folds the events of a session up to a position of the log; null folds all. */
export const foldEvents = (
  events: readonly LogEvent[],
  position: number | null,
  before: Transcript = EMPTY,
): Transcript => {
  let transcript = before;
  for (const event of events) {
    if (position !== null && event.position > position) break;
    transcript = foldEvent(transcript, event);
  }
  return transcript;
};
