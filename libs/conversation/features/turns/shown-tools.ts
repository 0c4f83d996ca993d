import type { ToolDescription } from '@antiphon/contracts/sandbox';
import { estimateTools } from '@antiphon/conversation-domain';
import type { SessionState } from '@antiphon/conversation-domain';
import type { JsonObject } from '@antiphon/kernel';
import type { ModelTool } from '@antiphon/providers-domain';
import { NATIVE_DESCRIPTIONS, isNativeTool } from '../tools/tool-schemas.js';

/** Number of tools of an agent up to which a prompt has all of them. */
const MAX_SHOWN_TOOLS = 30;
/** Maximum size of the schemas of found tools in a prompt, estimated tokens. */
const FOUND_TOKENS = 1_200;
/** Groups of tools that the description of `find_tools` names. */
const MAX_GROUPS = 30;

const FIND_TOOLS = 'find_tools';

/** Returns tools as a model gets them. */
export const toModelTools = (tools: readonly ToolDescription[]): ModelTool[] =>
  tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    inputSchema: inputSchema as JsonObject,
  }));

/** Returns the group of a tool: the server of an MCP tool, or what is before the first `_`. */
const groupOf = (name: string): string => {
  const [, server] = /^mcp__(.+?)__/.exec(name) ?? [];
  return server ?? name.split(/[_-]/)[0] ?? name;
};

/** Names the largest groups of the tools that are not shown, in the order of their names. */
const describeGroups = (hidden: readonly ToolDescription[]): string => {
  const counts = new Map<string, number>();
  for (const { name } of hidden) counts.set(groupOf(name), (counts.get(groupOf(name)) ?? 0) + 1);
  const largest = [...counts].sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1));
  const shown = largest.slice(0, MAX_GROUPS).sort(([a], [b]) => (a < b ? -1 : 1));
  const groups = shown.map(([group, count]) => `${group} (${count})`).join(', ');
  return `${hidden.length} tools, of ${groups}${largest.length > MAX_GROUPS ? ' and others' : ''}.`;
};

const withGroups = (find: ToolDescription, hidden: readonly ToolDescription[]): ToolDescription => ({
  ...find,
  description: `${find.description} ${describeGroups(hidden)}`,
});

/** Returns the newest found tools that fit, in the order in which they were found. */
const fitFound = (found: readonly ToolDescription[]): ToolDescription[] => {
  let room = FOUND_TOKENS;
  const fitting: ToolDescription[] = [];
  for (const tool of found.toReversed()) {
    room -= isNativeTool(tool.name) ? 0 : estimateTools(toModelTools([tool]));
    // The newest one is always shown.
    if (room < 0 && fitting.length > 0) break;
    fitting.unshift(tool);
  }
  return fitting;
};

/**
 * Returns the tools of a prompt. Of more than 30 it has the native ones and `find_tools`, then
 * those that the session has found. Tools are only added at the end, until they have no more room,
 * so that vendors can cache the part before them.
 */
export const shownTools = (
  tools: readonly ToolDescription[],
  { foundTools = [] }: Pick<SessionState, 'foundTools'>,
): ToolDescription[] => {
  const find = NATIVE_DESCRIPTIONS.get(FIND_TOOLS);
  const named = new Set(tools.map(({ name }) => name));
  const added = foundTools.flatMap((name) => (named.has(name) ? [] : (NATIVE_DESCRIPTIONS.get(name) ?? [])));
  if (tools.length <= MAX_SHOWN_TOOLS || !find) return [...tools, ...added];
  const native = tools.filter(({ name }) => isNativeTool(name) && name !== FIND_TOOLS);
  const hidden = tools.filter(({ name }) => !isNativeTool(name));
  const byName = new Map([...hidden, ...added].map((tool) => [tool.name, tool]));
  const found = foundTools.flatMap((name) => byName.get(name) ?? []);
  return [...native, withGroups(find, hidden), ...fitFound(found)];
};
