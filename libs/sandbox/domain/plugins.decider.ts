import type { PluginEvent } from '@antiphon/contracts/sandbox';
import { assertNever, notFound, rejected } from '@antiphon/kernel';
import type { Decider } from '@antiphon/kernel';

const schemaVersion = 1;

/** Maximum number of plug-ins that a workspace adds. */
export const MAX_ADDED_PLUGINS = 100;
/** Versions of a plug-in that the fold keeps. Older ones are facts only. */
const MAX_VERSIONS = 50;

/** One version of an added plug-in: its module, grants and limits. */
export interface AddedVersion {
  readonly version: number;
  readonly digest: string;
  readonly bytes: number;
  readonly capabilities: readonly string[];
  readonly timeoutMs: number;
  readonly memoryMb: number;
  readonly actor: string;
  readonly at: string;
}

export interface AddedPlugin {
  readonly name: string;
  readonly isRemoved: boolean;
  /** Oldest first; the last one is in use. */
  readonly versions: readonly AddedVersion[];
}

/** Plug-ins of a workspace: those that it added, and the names that it denied. */
export interface WorkspacePlugins {
  readonly added: ReadonlyMap<string, AddedPlugin>;
  readonly denied: ReadonlySet<string>;
}

interface Command<T extends string> {
  readonly type: T;
  readonly name: string;
  readonly actor: string;
  readonly now: string;
}
export interface AddPlugin
  extends
    Command<'Add'>,
    Pick<AddedVersion, 'digest' | 'bytes' | 'capabilities' | 'timeoutMs' | 'memoryMb'> {}
export type PluginCommand = AddPlugin | Command<'Remove'> | Command<'Allow'> | Command<'Deny'>;

/** Returns the version in use of a plug-in that exists. */
export const currentVersion = (plugin: AddedPlugin | undefined): AddedVersion | undefined =>
  plugin === undefined || plugin.isRemoved ? undefined : plugin.versions.at(-1);

const isSame = (a: AddedVersion, { digest, capabilities, timeoutMs, memoryMb }: AddPlugin): boolean =>
  a.digest === digest &&
  a.timeoutMs === timeoutMs &&
  a.memoryMb === memoryMb &&
  a.capabilities.join('\n') === capabilities.join('\n');

const add = (command: AddPlugin, { added }: WorkspacePlugins): PluginEvent[] => {
  const { name, digest, bytes, capabilities, timeoutMs, memoryMb, actor, now: at } = command;
  const known = added.get(name);
  const current = currentVersion(known);
  if (current && isSame(current, command)) return [];
  const living = [...added.values()].filter((one) => !one.isRemoved).length;
  if (!current && living >= MAX_ADDED_PLUGINS)
    throw rejected(
      'PLUGIN.LIMIT',
      `the workspace has ${MAX_ADDED_PLUGINS} added plug-ins. What to do: remove one`,
    );
  const version = (known?.versions.at(-1)?.version ?? 0) + 1;
  const limits = { capabilities: [...capabilities], timeoutMs, memoryMb };
  const data = { name, version, digest, bytes, ...limits, actor, at };
  return [{ type: current ? 'PluginVersionAdded' : 'PluginAdded', schemaVersion, data }];
};

const decide = (command: PluginCommand, state: WorkspacePlugins): PluginEvent[] => {
  const { name, actor, now: at } = command;
  const data = { name, actor, at };
  switch (command.type) {
    case 'Add':
      return add(command, state);
    case 'Remove':
      return currentVersion(state.added.get(name)) ? [{ type: 'PluginRemoved', schemaVersion, data }] : [];
    case 'Allow':
      return state.denied.has(name) ? [{ type: 'PluginAllowed', schemaVersion, data }] : [];
    case 'Deny':
      if (state.denied.size >= MAX_ADDED_PLUGINS && !state.denied.has(name))
        throw rejected('PLUGIN.LIMIT', `the workspace denies ${MAX_ADDED_PLUGINS} plug-ins already`);
      return state.denied.has(name) ? [] : [{ type: 'PluginDenied', schemaVersion, data }];
    default:
      return assertNever(command);
  }
};

const withVersion = (known: AddedPlugin | undefined, name: string, version: AddedVersion): AddedPlugin => ({
  ...{ name, isRemoved: false },
  versions: [...(known?.versions ?? []), version].slice(-MAX_VERSIONS),
});

const evolve = (state: WorkspacePlugins, { type, data }: PluginEvent): WorkspacePlugins => {
  const { name } = data;
  const added = new Map(state.added);
  const denied = new Set(state.denied);
  const known = added.get(name);
  switch (type) {
    case 'PluginAdded':
    case 'PluginVersionAdded':
      added.set(name, withVersion(known, name, data));
      break;
    case 'PluginRemoved':
      if (known) added.set(name, { ...known, isRemoved: true });
      break;
    case 'PluginAllowed':
      denied.delete(name);
      break;
    case 'PluginDenied':
      denied.add(name);
      break;
    default:
      return assertNever(type);
  }
  return { added, denied };
};

/**
 * Decides changes of the plug-ins of a workspace. A repeated change adds no fact. Throws
 * `PLUGIN.LIMIT`.
 */
export const pluginsDecider: Decider<WorkspacePlugins, PluginCommand, PluginEvent> = {
  initialState: () => ({ added: new Map(), denied: new Set() }),
  decide,
  evolve,
};

/** Throws `PLUGIN.NOT_FOUND`. */
export const pluginMissing = (name: string): never => {
  throw notFound('PLUGIN.NOT_FOUND', `the workspace has no plug-in "${name}"`);
};
