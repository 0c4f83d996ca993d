import type { ModelPrompt, ModelToolResult } from '@antiphon/agent-domain';

/** The open turn as the scripted provider sees it: its only state, so that a retry after a crash plays the same. */
export interface TurnView {
  /** What the user said last. */
  readonly user: string;
  /** The model call within the turn, from 1. */
  readonly step: number;
  /** The results of this turn's tool calls, oldest first. */
  readonly results: readonly ModelToolResult[];
  /** Tool calls in the whole request so far. */
  readonly toolCallsSoFar: number;
}

export const viewTurn = ({ messages }: ModelPrompt): TurnView => {
  const lastUser = messages.findLastIndex((message) => message.role === 'user');
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
