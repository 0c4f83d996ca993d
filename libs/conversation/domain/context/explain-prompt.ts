import type { OpenTurn, SessionState } from '../session/session-state.js';
import { factLine, fitPrompt, renderFacts } from './build-prompt.js';
import type { FittedTurn, PromptParts } from './build-prompt.js';
import { estimateAttached, estimateSent } from './message-files.js';
import { estimateMessages, estimateTokens, estimateTools } from './estimate-tokens.js';

/** An earlier turn in a context, with the reason if it is not whole. */
export interface ExplainedTurn {
  readonly turnId: string;
  readonly form: FittedTurn['form'];
  /** `window`: beyond the newest turns. `room`: too large. */
  readonly reason: 'window' | 'room' | null;
  readonly tokens: number;
}

/** A tool result of the open turn in a context. */
export interface ExplainedResult {
  readonly callId: string;
  readonly name: string;
  readonly tokens: number;
  readonly wholeTokens: number;
}

/** Sizes of the parts of a prompt, by the estimate that built it. */
export interface ExplainedPrompt {
  /** Tokens of the whole prompt. */
  readonly tokens: number;
  readonly instructionTokens: number;
  readonly identityTokens: number;
  /** Tokens of the remembered facts with their heading. */
  readonly memoryTokens: number;
  /** Tokens of each remembered fact, in their order. */
  readonly factTokens: readonly number[];
  /** Earlier turns, the newest first. */
  readonly turns: readonly ExplainedTurn[];
  readonly results: readonly ExplainedResult[];
  /** Tokens of the open turn without its tool results. */
  readonly messageTokens: number;
  readonly tools: readonly { readonly name: string; readonly tokens: number }[];
}

const sizeOf = (text: string | null): number => (text === null ? 0 : estimateTokens(text));

/** Returns the tool results of the open turn, in their order in the messages. */
const explainResults = (turn: OpenTurn, open: ReturnType<typeof fitPrompt>['open']): ExplainedResult[] => {
  const shown = open.flatMap((message) => (message.role === 'tool' ? message.results : []));
  const calls = turn.steps.flatMap((step) => step.calls);
  return calls.map(({ callId, name, content }, index) => ({
    callId,
    name,
    tokens: estimateTokens(shown[index]?.content ?? ''),
    wholeTokens: estimateTokens(content),
  }));
};

/** Joins the turns that were fitted with those that the session no longer holds, newest first. */
const explainTurns = (
  recent: readonly FittedTurn[],
  earlier: readonly string[],
  window: number,
): ExplainedTurn[] => {
  const known = new Set(recent.map(({ turn }) => turn.turnId));
  const fitted = recent.map(({ turn: { turnId }, form, messages }) => ({
    ...{ turnId, form, tokens: estimateMessages(messages) },
  }));
  const beyond = earlier
    .filter((turnId) => !known.has(turnId))
    .map((turnId) => ({ turnId, form: 'left_out' as const, tokens: 0 }));
  return [...beyond, ...fitted].reverse().map((turn, index) => ({
    ...turn,
    reason: turn.form === 'whole' ? null : index < window || known.has(turn.turnId) ? 'room' : 'window',
  }));
};

/**
 * Explains the prompt that `buildPrompt` builds from the same parts. `earlier` has the ids of all
 * ended turns before the open one, the oldest first.
 */
export const explainPrompt = (
  state: SessionState,
  turn: OpenTurn,
  parts: PromptParts,
  earlier: readonly string[],
): ExplainedPrompt => {
  const { tools, window, systemPrompt, remembered } = parts;
  const { system, recent, open } = fitPrompt(state, turn, parts);
  const results = explainResults(turn, open);
  const turns = explainTurns(recent, earlier, window);
  const openTokens = estimateMessages(open);
  const memoryTokens = sizeOf(renderFacts(remembered.facts));
  const turnTokens = turns.reduce((sum, { tokens }) => sum + tokens, 0);
  return {
    tokens:
      estimateTokens(system) +
      estimateSent([...recent.flatMap(({ messages }) => messages), ...open]) +
      estimateAttached(parts.attachedMedia ?? []) +
      turnTokens +
      openTokens +
      estimateTools(tools),
    instructionTokens: sizeOf(systemPrompt),
    identityTokens: sizeOf(remembered.soul),
    memoryTokens,
    factTokens: remembered.facts.map((fact) => estimateTokens(`${factLine(fact)}\n`)),
    turns,
    results,
    messageTokens: openTokens - memoryTokens - results.reduce((sum, { tokens }) => sum + tokens, 0),
    tools: tools.map((tool) => ({ name: tool.name, tokens: estimateTools([tool]) })),
  };
};
