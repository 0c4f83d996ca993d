import { NATIVE_TOOLS } from './native-tools.js';

const NATIVE: ReadonlySet<string> = new Set(NATIVE_TOOLS);

/** Returns true for a name that stands for all tools whose names begin with it. */
export const isToolPattern = (name: string): boolean => name.endsWith('*');

const beginsWith = (pattern: string, name: string): boolean =>
  isToolPattern(pattern) && name.startsWith(pattern.slice(0, -1));

/**
 * Returns true if a name of a list, which may end in `*`, stands for a tool. A pattern stands for
 * no native tool, so that an agent gets those by name only.
 */
export const matchesTool = (pattern: string, tool: string): boolean =>
  pattern === tool || (!NATIVE.has(tool) && beginsWith(pattern, tool));

/** Returns true if a list of tools has a tool, by its name or by a pattern. */
export const hasTool = (tools: readonly string[], tool: string): boolean =>
  tools.some((name) => matchesTool(name, tool));

/** Returns true if a list of tools has all that a name stands for, which may be a pattern itself. */
export const coversTool = (tools: readonly string[], name: string): boolean =>
  hasTool(tools, name) || (isToolPattern(name) && tools.some((own) => beginsWith(own, name)));

/**
 * Returns the tools of a list in its order: those of a pattern by name, each tool once. `known` has
 * the names of all tools.
 */
export const expandTools = (tools: readonly string[], known: Iterable<string>): readonly string[] => {
  const sorted = tools.some(isToolPattern) ? [...known].sort() : [];
  const expand = (name: string): readonly string[] =>
    isToolPattern(name) ? sorted.filter((tool) => matchesTool(name, tool)) : [name];
  return [...new Set(tools.flatMap(expand))];
};
