import { boundOfFiles, filesOf } from '@antiphon/providers-domain';
import type { ModelPrompt, ModelToolResult } from '@antiphon/providers-domain';

/**
 * View of the open turn. It is the scripted provider's only input, so that a retry after a crash
 * plays the same reply.
 */
export interface TurnView {
  /** The user message that began the turn. */
  readonly user: string;
  /** Number of the model call within the turn, from 1. */
  readonly step: number;
  /** Results of this turn's tool calls, oldest first. */
  readonly results: readonly ModelToolResult[];
  /** Number of tool calls in the whole request. */
  readonly toolCallsSoFar: number;
}

export const viewTurn = ({ messages }: ModelPrompt): TurnView => {
  // After tool results, a user message has messages of other agents: it begins no turn.
  const lastUser = messages.findLastIndex(
    ({ role }, index) => role === 'user' && messages[index - 1]?.role !== 'tool',
  );
  const user = messages[lastUser];
  const since = messages.slice(lastUser + 1);
  return {
    user: user?.role === 'user' ? user.text : '',
    step: 1 + since.filter((message) => message.role === 'tool').length,
    results: since.flatMap((message) => (message.role === 'tool' ? message.results : [])),
    toolCallsSoFar: messages.reduce(
      (sum, message) => sum + (message.role === 'assistant' ? message.toolCalls.length : 0),
      0,
    ),
  };
};

/** Size of this provider's tokens, UTF-8 bytes. */
export const BYTES_PER_TOKEN = 4;

/** Counts a request's tokens. The count is exact, so it is also the bound of the input. */
export const countPrompt = (prompt: ModelPrompt): number => {
  const { system, messages, tools, model } = prompt;
  const files = filesOf(prompt);
  const encoded = files.reduce((sum, { data }) => sum + data.length, 0);
  const bytes = Buffer.byteLength(JSON.stringify([system, messages, tools])) - encoded;
  return Math.ceil(bytes / BYTES_PER_TOKEN) + boundOfFiles(files, model) + encoded;
};
