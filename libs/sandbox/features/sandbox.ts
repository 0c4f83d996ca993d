import { availableParallelism } from 'node:os';
import type { PluginConfig } from '@antiphon/config';
import type { PluginView, ToolDescription } from '@antiphon/contracts/sandbox';
import type { Logger } from '@antiphon/observability';
import { createCallTool } from './call-tool/call-tool.handler.js';
import type { CallTool } from './call-tool/call-tool.handler.js';
import { raiseWall } from './cell/raise-wall.js';
import type { Layer } from './cell/wall.js';
import { systemEgress } from './http/egress.port.js';
import type { EgressPorts } from './http/egress.port.js';
import { createVettedClient } from './http/vetted-client.js';
import { grantsOf, loadPlugins } from './plugins/load-plugins.js';
import type { LoadedPlugin, PluginEntry } from './plugins/load-plugins.js';
import { pluginSources } from './plugins/plugin-source.js';
import { createTrialBench } from './plugins/trial-bench.js';
import { createCellPool } from './pool/cell-pool.js';
import type { PoolStats } from './pool/cell-pool.js';
import { RETIRE_AFTER_MS } from './pool/cell-slot.js';

/** Nest's token for the `Sandbox` of this process. */
export const SANDBOX = Symbol('Sandbox');

export interface SandboxOptions {
  /** Absolute path of the folder with the bundled plug-ins' modules. */
  readonly bundledDirectory: string;
  readonly plugins: readonly PluginConfig[];
  readonly logger: Logger;
  /** Cells; default: one for each core, from 2 to 8. */
  readonly cells?: number;
  /** Calls that may wait for a cell, default 256. */
  readonly maxQueued?: number;
  /** The way out for plug-ins' pages, default the machine's; which addresses are allowed is not its to say. */
  readonly egress?: EgressPorts;
}

/** Everything that runs plug-ins in this process. */
export interface Sandbox {
  readonly calls: CallTool;
  readonly tools: readonly ToolDescription[];
  readonly plugins: readonly PluginView[];
  readonly layers: readonly Layer[];
  readonly stats: () => PoolStats;
  readonly close: () => Promise<void>;
}

const MIN_CELLS = 2;
const MAX_CELLS = 8;
const MAX_QUEUED = 256;
const MAX_WAIT_MS = 10_000;
/** A cell's helper threads compile and collect garbage on the same account as its plug-ins. */
const CPU_FACTOR = 4;

const defaultCells = (): number => Math.min(MAX_CELLS, Math.max(MIN_CELLS, availableParallelism()));

const toolOf = (plugin: LoadedPlugin): ToolDescription => {
  const { source, image, policy } = plugin;
  const { description, inputSchema, idempotent } = plugin.description;
  return {
    ...{ name: source.name, description, inputSchema, idempotent },
    ...(policy.retry ? { retry: policy.retry } : {}),
    timeoutMs: policy.timeoutMs,
    moduleDigest: image.digest,
    grants: grantsOf(plugin),
  } as ToolDescription;
};

const toolsOf = (entries: readonly PluginEntry[]): ToolDescription[] =>
  entries.flatMap(({ plugin }) => (plugin?.source.kind === 'tool' ? [toolOf(plugin)] : []));

const limitsOf = (sources: readonly { readonly memoryMb: number; readonly timeoutMs: number }[]) => {
  const longest = Math.max(...sources.map(({ timeoutMs }) => timeoutMs));
  return {
    memoryMb: Math.max(...sources.map(({ memoryMb }) => memoryMb)),
    cpuSeconds: Math.ceil(((RETIRE_AFTER_MS + longest) * CPU_FACTOR) / 1_000),
  };
};

/** Puts up the wall, loads every plug-in behind it and warms the cells; rejects only when no cell starts at all. */
export const createSandbox = async (options: SandboxOptions): Promise<Sandbox> => {
  const { logger, cells = defaultCells(), maxQueued = MAX_QUEUED } = options;
  const sources = pluginSources(options.bundledDirectory, options.plugins);
  const wall = await raiseWall(limitsOf(sources), logger);
  const bench = createTrialBench(wall.open, wall.first);
  const entries = await loadPlugins(sources, bench, logger);
  const images = entries.flatMap(({ plugin }) => (plugin === null ? [] : [plugin.image]));
  const first = bench.release();
  await bench.close();
  const pool = createCellPool({
    open: wall.open,
    ...(first === null ? {} : { first }),
    size: cells,
    maxQueued,
    maxWaitMs: MAX_WAIT_MS,
    images,
    logger,
  });
  const egress = options.egress ?? systemEgress;
  const http = createVettedClient({ egress, logger, now: () => performance.now() });
  await pool.warm;
  return {
    calls: createCallTool({ entries, pool, http, logger }),
    tools: toolsOf(entries),
    plugins: entries.map(({ view }) => view),
    layers: wall.layers,
    stats: pool.stats,
    close: async () => {
      await pool.close();
      await wall.close();
    },
  };
};
