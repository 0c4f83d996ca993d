import { findNearest } from './find-nearest.js';
import type { ProblemList } from './problem-list.js';
import { entriesOf, tableOf, textOf, textsOf } from './raw-file.js';
import type { Entry } from './raw-file.js';
import type { TomlData } from './toml-value.js';

type File = Readonly<Record<string, TomlData>>;

const quote = (name: string): string => JSON.stringify(name);

const checkUnique = (list: ProblemList, entries: readonly Entry[], key: string, what: string): void => {
  const seen = new Map<string, Entry>();
  for (const entry of entries) {
    const name = textOf(entry.table, key);
    const first = name === null ? undefined : seen.get(name);
    if (name !== null && first === undefined) seen.set(name, entry);
    if (name !== null && first !== undefined)
      list.add([...entry.path, key], {
        message: `a second ${what} ${quote(name)}`,
        expected: `a different ${key} for each ${what}`,
        example: null,
        related: [...first.path, key],
      });
  }
};

const checkExists = (
  list: ProblemList,
  path: readonly (string | number)[],
  name: string | null,
  known: readonly string[],
  what: string,
): void => {
  if (name === null || known.includes(name)) return;
  list.add(path, {
    message: `unknown ${what} ${quote(name)}`,
    expected: known.length === 0 ? `a configured ${what}` : `one of ${known.join(', ')}`,
    nearest: findNearest(name, known),
  });
};

const namesOf = (entries: readonly Entry[], key: string): readonly string[] => [
  ...new Set(entries.flatMap(({ table }) => textOf(table, key) ?? [])),
];

/** Providers that agents may name, when the file configures none, are those that need no `[[providers]]`. */
const checkAgents = (list: ProblemList, file: File, builtInProvider: string): void => {
  const providers = entriesOf(file, 'providers');
  const known = providers.length === 0 ? [builtInProvider] : namesOf(providers, 'name');
  for (const { table, path } of entriesOf(file, 'agents')) {
    checkExists(list, [...path, 'provider'], textOf(table, 'provider'), known, 'provider');
    const fallback = textOf(tableOf(table, 'fallback'), 'provider');
    checkExists(list, [...path, 'fallback', 'provider'], fallback, known, 'provider');
  }
};

/** A rule for a tool that the agent does not have is a mistake that would leave another tool unguarded, or unlimited. */
const checkToolRules = (
  list: ProblemList,
  file: File,
  { key, what }: { readonly key: 'approvals' | 'tool_limits'; readonly what: string },
): void => {
  for (const agent of entriesOf(file, 'agents')) {
    const rules = entriesOf(agent.table, key).map((entry) => {
      return { ...entry, path: [...agent.path, ...entry.path] };
    });
    checkUnique(list, rules, 'tool', `${what} for the tool`);
    const tools = ['*', ...textsOf(agent.table, 'tools')];
    for (const { table, path } of rules)
      checkExists(list, [...path, 'tool'], textOf(table, 'tool'), tools, 'tool');
  }
};

const SELECTORS = ['channel', 'account', 'peer', 'guild', 'team'] as const;

const checkBindings = (list: ProblemList, file: File, agents: readonly string[]): void => {
  const seen = new Map<string, Entry>();
  for (const entry of entriesOf(file, 'bindings')) {
    checkExists(list, [...entry.path, 'agent'], textOf(entry.table, 'agent'), agents, 'agent');
    const present = SELECTORS.filter((key) => entry.table[key] !== undefined);
    if (present.length === 0)
      list.add(entry.path, {
        message: 'a binding that selects nothing',
        expected: `at least one of ${SELECTORS.join(', ')}; messages without a binding go to the first agent`,
        example: 'channel = "telegram"',
      });
    const id = JSON.stringify(SELECTORS.map((key) => textOf(entry.table, key)));
    const first = seen.get(id);
    if (first === undefined) seen.set(id, entry);
    else if (present.length > 0)
      list.add(entry.path, {
        message: 'a second binding for the same place',
        expected: `one binding for each combination of ${SELECTORS.join(', ')}`,
        example: null,
        related: first.path,
      });
  }
};

/** Names that must be unique, and names that must exist. */
export const checkReferences = (
  list: ProblemList,
  file: File,
  builtIn: { readonly provider: string; readonly agent: string },
): void => {
  const agents = entriesOf(file, 'agents');
  checkUnique(list, entriesOf(file, 'providers'), 'name', 'provider');
  checkUnique(list, agents, 'id', 'agent');
  checkUnique(list, entriesOf(file, 'plugins'), 'name', 'plug-in');
  checkAgents(list, file, builtIn.provider);
  checkToolRules(list, file, { key: 'approvals', what: 'approval rule' });
  checkToolRules(list, file, { key: 'tool_limits', what: 'limit' });
  checkBindings(list, file, agents.length === 0 ? [builtIn.agent] : namesOf(agents, 'id'));
};
