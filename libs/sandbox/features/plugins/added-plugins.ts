import { createHash } from 'node:crypto';
import { createBoundedMap, rejected } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { currentVersion } from '@antiphon/sandbox-domain';
import type { AddedPlugin, AddedVersion, WorkspacePlugins } from '@antiphon/sandbox-domain';
import type { Cell } from '../cell/cell-process.js';
import type { CellListener } from '../cell/exchange.js';
import { grantedFunctions } from './capabilities.js';
import { loadModule } from './load-plugins.js';
import type { LoadedPlugin, Refusal } from './load-plugins.js';
import { PluginProbe } from './plugin-probe.js';
import type { PluginRegistry } from './plugin-registry.js';
import type { PluginSource } from './plugin-source.js';

/** Maximum number of loaded versions that a process keeps. */
const MAX_LOADED = 500;
/** Age of the facts by which a call of a plug-in of the configuration is allowed, ms. */
const MAX_AGE_MS = 1_000;

export interface AddedPluginsDeps {
  readonly registry: Pick<PluginRegistry, 'read' | 'recent' | 'readModule'>;
  readonly open: () => Promise<Cell>;
  readonly logger: Logger;
}

type Limits = Pick<AddedVersion, 'capabilities' | 'timeoutMs' | 'memoryMb'>;

const toSource = (workspace: string, name: string, limits: Limits): PluginSource => ({
  ...{ name, workspace, path: '', kind: 'tool', bundled: false },
  ...{ capabilities: [...limits.capabilities], timeoutMs: limits.timeoutMs, memoryMb: limits.memoryMb },
  retry: { maxAttempts: null, maxBackoffMs: null },
  ...grantedFunctions(limits.capabilities),
});

/** Log of a plug-in without the capability `log`: a workspace does not write the operator's log. */
const SILENT: CellListener = {
  onLog: () => undefined,
  onFlood: () => undefined,
  onSuppressed: () => undefined,
};

export const digestOfModule = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Plug-ins that workspaces added, loaded when they are first listed or called. */
export class AddedPlugins {
  readonly #deps: AddedPluginsDeps;
  readonly #loaded = createBoundedMap<Promise<LoadedPlugin | Refusal>>(MAX_LOADED);
  #probing: Promise<unknown> = Promise.resolve();

  constructor(deps: AddedPluginsDeps) {
    this.#deps = deps;
  }

  /** Returns the plug-ins of a workspace and the names that it denied, as of about a second ago. */
  recent(workspace: string): Promise<WorkspacePlugins> {
    return this.#deps.registry.recent(workspace, MAX_AGE_MS);
  }

  /** Loads all plug-ins of a workspace. */
  async list(workspace: string): Promise<readonly (LoadedPlugin | Refusal)[]> {
    const { added } = await this.#deps.registry.read(workspace);
    const loaded: (LoadedPlugin | Refusal)[] = [];
    for (const plugin of added.values()) {
      const one = await this.#load(workspace, plugin);
      if (one) loaded.push(one);
    }
    return loaded;
  }

  /** Loads the version in use of a plug-in. Returns undefined if there is none. */
  async find(workspace: string, name: string): Promise<LoadedPlugin | undefined> {
    const { added } = await this.#deps.registry.read(workspace);
    const plugin = added.get(name);
    const loaded = plugin && (await this.#load(workspace, plugin));
    return loaded && 'image' in loaded ? loaded : undefined;
  }

  /** Validates a module and asks it for its description. Throws `PLUGIN.REJECTED`. */
  async check(workspace: string, name: string, bytes: Uint8Array, limits: Limits): Promise<LoadedPlugin> {
    const result = await this.#probe(toSource(workspace, name, limits), bytes);
    if ('image' in result) return result;
    throw rejected('PLUGIN.REJECTED', `the plug-in "${name}" cannot be added: ${result.reason}`);
  }

  async #load(workspace: string, plugin: AddedPlugin): Promise<LoadedPlugin | Refusal | undefined> {
    const version = currentVersion(plugin);
    if (!version) return undefined;
    const key = `${workspace}\n${plugin.name}\n${version.version}`;
    const known = this.#loaded.get(key);
    if (known) return known;
    const loading = this.#loadVersion(workspace, plugin.name, version);
    this.#loaded.put(key, loading);
    // A failure of the database or of a cell is no verdict about the module.
    loading.catch(() => this.#loaded.delete(key));
    return loading;
  }

  async #loadVersion(
    workspace: string,
    name: string,
    version: AddedVersion,
  ): Promise<LoadedPlugin | Refusal> {
    const bytes = await this.#deps.registry.readModule(workspace, version.digest);
    const source = toSource(workspace, name, version);
    if (!bytes) return { status: 'missing', reason: 'its module is not stored', digest: version.digest };
    const result = await this.#probe(source, bytes);
    const { logger } = this.#deps;
    const fields = { workspace, plugin: name, version: version.version };
    if ('image' in result) logger.info({ ...fields, digest: version.digest }, 'added plugin loaded');
    else logger.warn({ ...fields, reason: result.reason }, 'added plugin rejected');
    return result;
  }

  /** Probes one module after another, each in a cell of its own. */
  #probe(source: PluginSource, bytes: Uint8Array): Promise<LoadedPlugin | Refusal> {
    const { open, logger } = this.#deps;
    const work = async (): Promise<LoadedPlugin | Refusal> => {
      const probe = new PluginProbe(open, null);
      try {
        const file = { bytes, digest: digestOfModule(bytes) };
        const result = await loadModule(source, file, probe, logger);
        const isSilent = !source.capabilities.includes('log');
        return 'image' in result && isSilent ? { ...result, listener: SILENT } : result;
      } finally {
        await probe.close();
      }
    };
    const probing = this.#probing.then(work, work);
    this.#probing = probing.catch(() => undefined);
    return probing;
  }
}
