import type { ModelMessage, ModelToolResult } from '../model-port.js';
import type { OpenTurn, PastTurn, TurnStep, TurnToolCall } from '../session/session-state.js';
import { clipToTokens } from './clip-text.js';
import type { CallNames } from './name-calls.js';

/** Vendors refuse an assistant message without content. */
const EMPTY_ANSWER = '(no text)';
const NOT_RUN = 'this tool call was not run: the turn ended before it';

const resultOf = (call: TurnToolCall, id: string, resultTokens: number): ModelToolResult => {
  const { name, status, content, isError } = call;
  return status === 'asked' || status === 'requested'
    ? { id, name, content: NOT_RUN, isError: true }
    : { id, name, content: clipToTokens(content, resultTokens), isError };
};

/** One step: what the model said, and, where it asked for tools, exactly one result for each of them. */
const stepMessages = ({ text, calls }: TurnStep, names: CallNames, resultTokens: number): ModelMessage[] => {
  if (calls.length === 0) return [{ role: 'assistant', text: text || EMPTY_ANSWER, toolCalls: [] }];
  const idOf = ({ callId }: TurnToolCall): string => names.get(callId) ?? callId;
  return [
    {
      role: 'assistant',
      text,
      toolCalls: calls.map((call) => ({ id: idOf(call), name: call.name, input: call.input })),
    },
    { role: 'tool', results: calls.map((call) => resultOf(call, idOf(call), resultTokens)) },
  ];
};

/** An assistant's text that follows one joins it: sides alternate for every vendor. */
const joinSides = (messages: readonly ModelMessage[]): ModelMessage[] => {
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

/** The open turn as far as it has come; results are clipped to `resultTokens` each. */
export const openTurnMessages = (turn: OpenTurn, names: CallNames, resultTokens = Infinity): ModelMessage[] =>
  joinSides([
    { role: 'user', text: turn.content },
    ...turn.steps.flatMap((step) => stepMessages(step, names, resultTokens)),
  ]);

/** The last word of a turn that came to no answer, so that its tools' results do not stand at its end. */
const closingText = ({ ending, note, steps }: PastTurn): string | null => {
  const last = steps.at(-1);
  if (ending === 'completed' && last?.calls.length === 0) return null;
  if (ending === 'failed') return `[failed: ${note}]`;
  return [note, '[stopped]'].filter(Boolean).join(' ');
};

/** A turn that is over: from the user's words to the assistant's last. */
export const pastTurnMessages = (turn: PastTurn, names: CallNames): ModelMessage[] => {
  const closing = closingText(turn);
  return joinSides([
    { role: 'user', text: turn.content },
    ...turn.steps.flatMap((step) => stepMessages(step, names, Infinity)),
    ...(closing === null ? [] : [{ role: 'assistant' as const, text: closing, toolCalls: [] }]),
  ]);
};

/** The same without its tools: what was said on both sides, for when the whole does not fit. */
export const pastTurnSummary = (turn: PastTurn): ModelMessage[] => {
  const said = [...turn.steps.map(({ text }) => text), closingText(turn)].filter(Boolean).join('\n\n');
  return [
    { role: 'user', text: turn.content },
    { role: 'assistant', text: said || EMPTY_ANSWER, toolCalls: [] },
  ];
};
