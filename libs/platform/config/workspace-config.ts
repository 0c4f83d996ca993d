import type { AntiphonConfig, BudgetLimitConfig } from './antiphon-config.js';

/** Workspace of an entry that serves all workspaces. */
export const ALL_WORKSPACES = '*';

interface Owned {
  readonly workspace?: string;
}

/** Returns true if an entry serves a workspace. Built-in entries serve all of them. */
export const isVisibleIn = ({ workspace = ALL_WORKSPACES }: Owned, reader: string): boolean =>
  workspace === ALL_WORKSPACES || workspace === reader;

/** Returns the limits of a workspace: its own, else the general ones. */
export const budgetLimitsOf = (
  { budgets }: Pick<AntiphonConfig, 'budgets'>,
  workspace: string,
): BudgetLimitConfig => budgets.workspaces.find((own) => own.workspace === workspace) ?? budgets;

const known = new WeakMap<AntiphonConfig, Map<string, AntiphonConfig>>();

const filterFor = (config: AntiphonConfig, workspace: string): AntiphonConfig => {
  const { agents, bindings, channels, plugins, mcp } = config;
  const isOwn = (entry: Owned): boolean => isVisibleIn(entry, workspace);
  return {
    ...config,
    agents: agents.filter(isOwn),
    bindings: bindings.filter(isOwn),
    channels: channels.filter(isOwn),
    plugins: plugins.filter(isOwn),
    mcp: { ...mcp, servers: mcp.servers.filter(isOwn) },
  };
};

/**
 * Returns the configuration as a workspace sees it: its own agents, bindings and plug-ins, and
 * those of all workspaces. The same workspace gets the same object.
 */
export const workspaceConfig = (config: AntiphonConfig, workspace: string): AntiphonConfig => {
  const filtered = known.get(config) ?? new Map<string, AntiphonConfig>();
  known.set(config, filtered);
  const { agents, bindings, channels, plugins, mcp } = config;
  const isNamed = [...agents, ...bindings, ...channels, ...plugins, ...mcp.servers].some(
    (entry) => entry.workspace === workspace,
  );
  // All workspaces that no entry names see the same, so that the map stays small.
  const name = isNamed ? workspace : ALL_WORKSPACES;
  const found = filtered.get(name) ?? filterFor(config, name);
  filtered.set(name, found);
  return found;
};
