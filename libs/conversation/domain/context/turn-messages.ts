import { textOf } from '@antiphon/contracts/causes';
import { renderReceived } from '../session/render-received.js';
import type { AssistantMessage, ModelMessage, ModelToolResult } from '@antiphon/providers-domain';
import type { OpenTurn, PastTurn, TurnStep, TurnToolCall } from '../session/session-state.js';
import { askedInputOf, withEditNote } from '../session/edited-call.js';
import { clipResult } from './estimate-tokens.js';
import { NO_TEXTS, fileLabel, withFiles } from './message-files.js';
import type { FileTexts } from './message-files.js';

/** Format of a tool call id that every vendor accepts. */
const PORTABLE_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Ids of tool calls within one request, by `callId`. */
export type RequestCallIds = ReadonlyMap<string, string>;

/**
 * Assigns each tool call of these turns an id that is unique within the request. Uses the model's
 * own id if it is portable and not taken, else our `callId`: models repeat ids, and some send none.
 */
export const assignCallIds = (turns: readonly { readonly steps: readonly TurnStep[] }[]): RequestCallIds => {
  const ids = new Map<string, string>();
  const used = new Set<string>();
  for (const { callId, providerCallId } of turns.flatMap(({ steps }) =>
    steps.flatMap(({ calls }) => calls),
  )) {
    const id = PORTABLE_ID.test(providerCallId) && !used.has(providerCallId) ? providerCallId : callId;
    used.add(id);
    ids.set(callId, id);
  }
  return ids;
};

/** Note in place of a file of an earlier turn that does not fit. */
const NO_ROOM = '[left out: the context has no room for it]';
/** Text in place of an empty one: vendors refuse an assistant message without content. */
const EMPTY_ANSWER = '(no text)';
const NOT_RUN = 'this tool call was not run: the turn ended before it';

const toResult = (call: TurnToolCall, id: string, resultTokens: number): ModelToolResult => {
  const { name, status, isError } = call;
  return status === 'asked' || status === 'requested'
    ? { id, name, content: NOT_RUN, isError: true }
    : { id, name, content: withEditNote(call, clipResult(call, resultTokens)), isError };
};

/** Model that a request is for. */
interface RequestModel {
  readonly provider: string;
  readonly model: string;
}

/** Model of a request, the ids of its tool calls and the texts of its files. */
export interface RequestParts {
  readonly callIds: RequestCallIds;
  readonly choice: RequestModel;
  /** Texts of the files that the model gets as text. */
  readonly fileTexts?: FileTexts;
}

/** Returns the state of a step for the model that made it. Another model must not get it. */
const stateFor = (
  { provider, model, providerState, thought = '' }: TurnStep,
  wanted: RequestModel,
): Pick<AssistantMessage, 'providerState' | 'thought'> =>
  providerState !== undefined && provider === wanted.provider && model === wanted.model
    ? { providerState, thought }
    : {};

/** Renders one step: the assistant's message and, after tool calls, exactly one result for each. */
const stepMessages = (
  step: TurnStep,
  { callIds, choice }: RequestParts,
  resultTokens: number,
): ModelMessage[] => {
  const { text, calls } = step;
  if (calls.length === 0) return [{ role: 'assistant', text: text || EMPTY_ANSWER, toolCalls: [] }];
  const idOf = ({ callId }: TurnToolCall): string => callIds.get(callId) ?? callId;
  return [
    {
      role: 'assistant',
      text,
      toolCalls: calls.map((call) => ({ id: idOf(call), name: call.name, input: askedInputOf(call) })),
      ...stateFor(step, choice),
    },
    { role: 'tool', results: calls.map((call) => toResult(call, idOf(call), resultTokens)) },
  ];
};

/** Joins consecutive assistant messages: every vendor requires alternating roles. */
const joinConsecutive = (messages: readonly ModelMessage[]): ModelMessage[] => {
  const joined: ModelMessage[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (last?.role === 'assistant' && message.role === 'assistant' && last.toolCalls.length === 0)
      joined[joined.length - 1] = {
        ...message,
        text: [last.text, message.text].filter(Boolean).join('\n\n'),
      };
    else joined.push(message);
  }
  return joined;
};

type TurnParts = Pick<PastTurn, 'content' | 'files' | 'received' | 'steps'> &
  Partial<Pick<OpenTurn, 'returned'>>;

/**
 * Renders a turn's text, steps and the messages of other agents at their places. Those before the
 * first step join the turn's text.
 */
const turnMessages = (
  { content, files = [], received, steps, returned = null }: TurnParts,
  { fileTexts = NO_TEXTS }: RequestParts,
  render: (step: TurnStep) => readonly ModelMessage[],
): ModelMessage[] => {
  const messagesAt = (index: number): string | null => {
    const messages = received.flatMap((batch) => (batch.afterSteps === index ? batch.messages : []));
    const parts = [
      ...(returned?.afterSteps === index ? [textOf(returned.cause)] : []),
      ...(messages.length > 0 ? [renderReceived(messages)] : []),
    ];
    return parts.length > 0 ? parts.join('\n\n') : null;
  };
  const sent = files.length === 0 ? { text: content } : withFiles(content, files, fileTexts);
  const opening = [sent.text, messagesAt(0)].filter((part) => part !== null).join('\n\n');
  return [
    { ...sent, role: 'user', text: opening },
    ...steps.flatMap((step, index) => {
      const text = messagesAt(index + 1);
      return [...render(step), ...(text === null ? [] : [{ role: 'user' as const, text }])];
    }),
  ];
};

/** Renders the open turn. Clips each tool result to `resultTokens`. */
export const openTurnMessages = (
  turn: OpenTurn,
  request: RequestParts,
  resultTokens = Infinity,
): ModelMessage[] =>
  joinConsecutive(turnMessages(turn, request, (step) => stepMessages(step, request, resultTokens)));

/** Returns a last text for a turn without an answer, so that it does not end with tool results. */
const closingText = ({ ending, note, steps }: PastTurn): string | null => {
  const last = steps.at(-1);
  if (ending === 'completed' && last?.calls.length === 0) return null;
  if (ending === 'failed') return `[failed: ${note}]`;
  return [note, '[stopped]'].filter(Boolean).join(' ');
};

/** Renders an ended turn with its tool calls. */
export const pastTurnMessages = (turn: PastTurn, request: RequestParts): ModelMessage[] => {
  const closing = closingText(turn);
  return joinConsecutive([
    ...turnMessages(turn, request, (step) => stepMessages(step, request, Infinity)),
    ...(closing === null ? [] : [{ role: 'assistant' as const, text: closing, toolCalls: [] }]),
  ]);
};

/** Renders an ended turn without its tool calls, for a prompt in which the whole does not fit. */
export const pastTurnSummary = (turn: PastTurn): ModelMessage[] => {
  const text = [...turn.steps.map((step) => step.text), closingText(turn)].filter(Boolean).join('\n\n');
  const files = (turn.files ?? []).map((file) => `${fileLabel(file)}\n${NO_ROOM}`);
  return [
    { role: 'user', text: [turn.content, ...files].filter((part) => part !== '').join('\n\n') },
    { role: 'assistant', text: text || EMPTY_ANSWER, toolCalls: [] },
  ];
};
