import type { ModelMessage, ModelPrompt, ModelTool } from '../model-port.js';
import type { OpenTurn, PastTurn, SessionState } from '../session/session-state.js';
import type { ModelChoice } from '../turn/step.js';
import { buildSystem } from './build-system.js';
import type { MemoryContext } from './build-system.js';
import { estimateMessages, estimateTokens, estimateTools } from './estimate-tokens.js';
import { nameCalls } from './name-calls.js';
import type { CallNames } from './name-calls.js';
import { openTurnMessages, pastTurnMessages, pastTurnSummary } from './turn-messages.js';

/** A tool's result is not clipped below this: less would tell the model nothing. */
export const MIN_RESULT_TOKENS = 64;

export interface PromptParts {
  readonly choice: ModelChoice;
  readonly systemPrompt: string | null;
  readonly remembered: MemoryContext;
  readonly tools: readonly ModelTool[];
  /** Recent turns at most. */
  readonly window: number;
  /** Bound of the whole in estimated tokens: `[memory] context_tokens`. */
  readonly contextTokens: number;
}

/** The highest cap under which all of these together fit the room: small ones leave their share to large ones. */
const evenCap = (sizes: readonly number[], room: number): number => {
  let left = room;
  const ascending = [...sizes].sort((a, b) => a - b);
  for (const [index, size] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index));
    if (size > share) return share;
    left -= size;
  }
  return Infinity;
};

/** The open turn is always there; only its tools' results share what the rest leaves them. */
const fitOpenTurn = (turn: OpenTurn, names: CallNames, room: number): ModelMessage[] => {
  const whole = openTurnMessages(turn, names);
  if (estimateMessages(whole) <= room) return whole;
  const bare = estimateMessages(openTurnMessages(turn, names, 0));
  const sizes = turn.steps.flatMap(({ calls }) => calls.map(({ content }) => estimateTokens(content)));
  return openTurnMessages(turn, names, Math.max(MIN_RESULT_TOKENS, evenCap(sizes, room - bare)));
};

/** Recent turns, newest first as long as they fit: with their tools, else as what was said, else no further. */
const fitRecent = (recent: readonly PastTurn[], names: CallNames, room: number): ModelMessage[] => {
  let left = room;
  let messages: ModelMessage[] = [];
  for (const turn of [...recent].reverse()) {
    const fitting = [pastTurnMessages(turn, names), pastTurnSummary(turn)].find(
      (candidate) => estimateMessages(candidate) <= left,
    );
    if (!fitting) break;
    messages = [...fitting, ...messages];
    left -= estimateMessages(fitting);
  }
  return messages;
};

/**
 * What a model is asked for the open turn: soul, system prompt, facts; recent turns; the turn itself; tools.
 * Within `contextTokens` by this folder's estimate, unless the system text, the tools, the open turn's own words
 * and the shortest results are more than that by themselves: nothing of those is ever left out.
 */
export const buildPrompt = (state: SessionState, turn: OpenTurn, parts: PromptParts): ModelPrompt => {
  const { choice, tools, window, contextTokens } = parts;
  const system = buildSystem(parts.systemPrompt, parts.remembered);
  const room = contextTokens - estimateTokens(system) - estimateTools(tools);
  const recent = state.recent.slice(-window);
  const names = nameCalls([...recent, turn]);
  const open = fitOpenTurn(turn, names, room);
  const messages = [...fitRecent(recent, names, room - estimateMessages(open)), ...open];
  return { provider: choice.provider, model: choice.model, system, messages, tools };
};
