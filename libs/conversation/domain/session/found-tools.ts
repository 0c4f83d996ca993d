import type { SessionEventOf } from '@antiphon/contracts/agent';
import type { SessionState } from './session-state.js';

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

/**
 * Adds the tools of a result of `find_tools` at the end: one that was found before may have had no
 * room since.
 */
export const addFound = (
  state: SessionState,
  { callId, content, isError }: SessionEventOf<'ToolCallCompleted'>['data'],
): SessionState => {
  const call = state.open?.steps.flatMap(({ calls }) => calls).find((one) => one.callId === callId);
  if (call?.name !== FIND_TOOLS || isError) return state;
  const found = new Set(namesIn(content));
  if (found.size === 0) return state;
  const earlier = (state.foundTools ?? []).filter((name) => !found.has(name));
  return { ...state, foundTools: [...earlier, ...found].slice(-MAX_FOUND) };
};
