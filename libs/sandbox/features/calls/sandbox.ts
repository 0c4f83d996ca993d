import { availableParallelism } from 'node:os';
import type { AgentConfig, ChannelConfig, PluginConfig } from '@antiphon/config';
import { MAX_ADDED_MEMORY_MB, MAX_ADDED_TIMEOUT_MS } from '@antiphon/contracts/sandbox';
import type { PluginView } from '@antiphon/contracts/sandbox';
import type { Logger } from '@antiphon/observability';
import { CallRegistry } from './call-registry.js';
import { HeldResults } from './held-results.js';
import { startIsolation } from '../cell/isolation.js';
import type { Layer } from '../cell/isolation.js';
import { listChannelSources } from '../plugins/channel-sources.js';
import { systemEgress } from '../http/fetch-page.js';
import type { EgressPorts } from '../http/fetch-page.js';
import type { ReadSecrets } from '../http/request-secrets.js';
import { VettedClient } from '../http/vetted-client.js';
import { AddedPlugins } from '../plugins/added-plugins.js';
import { loadPlugins } from '../plugins/load-plugins.js';
import type { PluginEntry } from '../plugins/load-plugins.js';
import { PluginProbe } from '../plugins/plugin-probe.js';
import type { PluginRegistry } from '../plugins/plugin-registry.js';
import { listPluginSources } from '../plugins/plugin-source.js';
import { PluginTools } from './plugin-tools.js';
import type { ToolSource } from './tool-source.js';
import type { PluginStore } from '../store/plugin-store.js';
import { CellPool } from '../pool/cell-pool.js';
import { RETIRE_AFTER_MS } from '../pool/cell-slot.js';

/** Nest's token for the `Sandbox` of this process. */
export const SANDBOX = Symbol('Sandbox');

export interface SandboxOptions {
  /** Absolute path of the folder with the bundled plug-ins' modules. */
  readonly bundledDirectory: string;
  readonly plugins: readonly PluginConfig[];
  /** Channels, whose bundled plug-ins are loaded; none by default. */
  readonly channels?: readonly ChannelConfig[];
  /** Agents whose approval rules apply; none by default. */
  readonly agents?: readonly AgentConfig[];
  readonly logger: Logger;
  /** Isolation layers without which the sandbox does not start; none by default. */
  readonly requiredLayers?: readonly Layer[];
  /** Number of cells; by default one for each core, from 2 to 8. */
  readonly cells?: number;
  /** Maximum number of calls that wait for a cell; by default 256. */
  readonly maxQueued?: number;
  /** Network port for plug-ins' pages; by default the machine's. Allows no further addresses. */
  readonly egress?: EgressPorts;
  /** Plug-ins that workspaces added; none by default. */
  readonly registry?: PluginRegistry;
  /** Stores of plug-ins; none by default. */
  readonly store?: PluginStore;
  /** Secrets of workspaces; none by default. */
  readonly readSecrets?: ReadSecrets;
  /** Sources of tools after the plug-ins. */
  readonly sources?: readonly ToolSource[];
}

/** Plug-ins of this process, and the cells that run them. */
export interface Sandbox {
  /** Plug-ins, with those that could not be loaded. */
  readonly entries: readonly PluginEntry[];
  readonly agents: readonly AgentConfig[];
  /** Sources of tools, in the order in which a name is looked up. */
  readonly sources: readonly ToolSource[];
  readonly plugins: readonly PluginView[];
  /** Null without a registry. */
  readonly added: AddedPlugins | null;
  readonly calls: CallRegistry;
  /** Large results that wait for their callers. */
  readonly held: HeldResults;
  readonly pool: CellPool;
  readonly http: VettedClient;
  /** Network port of requests for channels. */
  readonly egress: EgressPorts;
  readonly layers: readonly Layer[];
  readonly logger: Logger;
  readonly close: () => Promise<void>;
}

const MIN_CELLS = 2;
const MAX_CELLS = 8;
const MAX_QUEUED = 256;
const MAX_WAIT_MS = 10_000;
/** Allowance for a cell's helper threads, which share its processor time with plug-ins. */
const CPU_FACTOR = 4;

const defaultCells = (): number => Math.min(MAX_CELLS, Math.max(MIN_CELLS, availableParallelism()));

const isolationLimits = (sources: readonly { readonly memoryMb: number; readonly timeoutMs: number }[]) => {
  const longestMs = Math.max(MAX_ADDED_TIMEOUT_MS, ...sources.map(({ timeoutMs }) => timeoutMs));
  return {
    memoryMb: Math.max(MAX_ADDED_MEMORY_MB, ...sources.map(({ memoryMb }) => memoryMb)),
    cpuSeconds: Math.ceil(((RETIRE_AFTER_MS + longestMs) * CPU_FACTOR) / 1_000),
  };
};

/**
 * Starts the isolation, loads all plug-ins in it and warms the cells. Rejects when no cell starts.
 */
export const createSandbox = async (options: SandboxOptions): Promise<Sandbox> => {
  const { logger, cells = defaultCells(), maxQueued = MAX_QUEUED, egress = systemEgress } = options;
  const { bundledDirectory, plugins, channels = [] } = options;
  const sources = [
    ...listPluginSources(bundledDirectory, plugins),
    ...listChannelSources(bundledDirectory, channels, plugins),
  ];
  const isolation = await startIsolation(isolationLimits(sources), logger, options.requiredLayers);
  const probe = new PluginProbe(isolation.open, isolation.first);
  const entries = await loadPlugins(sources, probe, logger);
  const first = probe.release() ?? undefined;
  await probe.close();
  const pool = new CellPool({
    open: isolation.open,
    first,
    size: cells,
    maxQueued,
    maxWaitMs: MAX_WAIT_MS,
    images: entries.flatMap(({ plugin }) => (plugin === null ? [] : [plugin.image])),
    logger,
  });
  await pool.warm;
  const http = new VettedClient({ egress, logger, now: () => performance.now() });
  const { registry, store = null, readSecrets = null } = options;
  const added = registry ? new AddedPlugins({ registry, open: isolation.open, logger }) : null;
  return {
    agents: options.agents ?? [],
    sources: [
      new PluginTools({ entries, pool, http, added, store, readSecrets, logger }),
      ...(options.sources ?? []),
    ],
    plugins: entries.map(({ view }) => view),
    added,
    calls: new CallRegistry(),
    held: new HeldResults(() => performance.now()),
    pool,
    http,
    egress,
    entries,
    layers: isolation.layers,
    logger,
    close: async () => {
      await pool.close();
      await isolation.close();
    },
  };
};
