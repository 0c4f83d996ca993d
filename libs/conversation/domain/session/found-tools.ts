import type { SessionEventOf } from '@antiphon/contracts/agent';
import type { SessionState, TurnToolCall } from './session-state.js';

/** Native tool whose results name the tools that later prompts have. */
const FIND_TOOLS = 'find_tools';

/** Maximum number of found tools of a session. */
const MAX_FOUND = 40;

/** Returns the names in the first line of a result; none for a line without them. */
const namesIn = (content: string): readonly string[] => {
  const end = content.indexOf('\n');
  try {
    const { found } = JSON.parse(end === -1 ? content : content.slice(0, end)) as { found?: unknown };
    return Array.isArray(found) ? found.filter((name) => typeof name === 'string') : [];
  } catch {
    return [];
  }
};

/** Native tools that read results, of which a prompt may have a part only. */
const RESULT_TOOLS = ['read_result', 'search_result'];
/** Length from which a result may be clipped in a prompt, UTF-16 units. */
const LONG_RESULT = 12_000;

/**
 * Adds the tools that later prompts have because of a result. After a long one, they have the tools
 * that read it. Those that `find_tools` found come last, also if they were found before: they may
 * have had no room since.
 */
export const addTools = (
  state: SessionState,
  { callId, content, isError, stored }: SessionEventOf<'ToolCallCompleted'>['data'],
): SessionState => {
  const known = state.foundTools ?? [];
  if ((stored || content.length > LONG_RESULT) && !known.includes('read_result'))
    return { ...state, foundTools: [...known, ...RESULT_TOOLS].slice(-MAX_FOUND) };
  const call = state.open?.steps.flatMap(({ calls }) => calls).find((one) => one.callId === callId);
  const found = new Set(call?.name === FIND_TOOLS && !isError ? namesIn(content) : []);
  if (found.size === 0) return state;
  const earlier = known.filter((name) => !found.has(name));
  return { ...state, foundTools: [...earlier, ...found].slice(-MAX_FOUND) };
};

/** Returns what the result of a call changes of it. */
export const completedCall = ({
  content,
  isError,
  stored,
}: SessionEventOf<'ToolCallCompleted'>['data']): Partial<TurnToolCall> => ({
  ...{ status: 'completed', content, isError },
  ...(stored ? { stored } : {}),
});
