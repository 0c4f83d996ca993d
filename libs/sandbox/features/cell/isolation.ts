import { execFile } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { invalid } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { MAX_TABLE_ENTRIES } from '@antiphon/sandbox-domain';
import { openCell } from './cell-process.js';
import type { Cell, CellLaunch } from './cell-process.js';
import type { CellFacts } from './protocol.js';

/** Isolation layers between a plug-in and the machine, in addition to the engine's own checks. */
export const LAYERS = ['process', 'files', 'network', 'user', 'limits', 'dies-with-service'] as const;
export type Layer = (typeof LAYERS)[number];

/** Start of cells on this machine. */
export interface Isolation extends CellLaunch {
  /** Layers whose command line works on this machine. */
  readonly planned: readonly Layer[];
  readonly close: () => Promise<void>;
}

export interface IsolationLimits {
  /** The largest `memory_mb` of any plug-in. */
  readonly memoryMb: number;
  /** Processor time after which the kernel kills a cell, as a backstop for the service. */
  readonly cpuSeconds: number;
}

/**
 * User of a cell: owns no file and no other process. Not 65534: that user also runs PostgreSQL
 * where the service is root, and a user namespace shows it for every user.
 */
const CELL_USER = 65_533;
const CELL_USER_WITHOUT_CAPABILITIES = [
  `--reuid=${CELL_USER}`,
  `--regid=${CELL_USER}`,
  '--clear-groups',
  '--inh-caps=-all',
  '--bounding-set=-all',
];
const HEAP_MB = 64;
const PAGES_PER_MIB = 16;
/** Writable memory of Node without plug-ins: 512 MiB for its code range, and room for HEAP_MB. */
const BASE_DATA_MB = 768;
const PROBE_TIMEOUT_MS = 5_000;

/** Returns whether a command-line prefix works on this machine, by running `true` with it. */
const canRun = (prefix: readonly string[]): Promise<boolean> =>
  new Promise((resolve) => {
    const [command = '', ...args] = prefix;
    execFile(command, [...args, 'true'], { timeout: PROBE_TIMEOUT_MS, env: {} }, (error) =>
      resolve(error === null),
    );
  });

const isRoot = (): boolean => process.getuid?.() === 0;

interface Step {
  readonly prefix: readonly string[];
  readonly layer: Layer;
}

/**
 * Returns the steps in the required order. A new user namespace clears the parent-death signal, so
 * that signal is set later. Root is dropped before both.
 */
const listSteps = ({ memoryMb, cpuSeconds }: IsolationLimits): Step[] => {
  const kib = (BASE_DATA_MB + 4 * memoryMb) * 1024;
  // RLIMIT_DATA counts writable memory. RLIMIT_AS would count V8's reserved guard regions too.
  const limits = `ulimit -c 0 && ulimit -f 0 && ulimit -n 64 && ulimit -d ${kib} && ulimit -t ${cpuSeconds}`;
  const asRoot: Step[] = [
    { prefix: ['unshare', '--net'], layer: 'network' },
    { prefix: ['setpriv', ...CELL_USER_WITHOUT_CAPABILITIES], layer: 'user' },
  ];
  return [
    ...(isRoot() ? asRoot : []),
    { prefix: ['unshare', '--user', '--net'], layer: 'network' },
    { prefix: ['setpriv', '--no-new-privs', '--pdeathsig=KILL'], layer: 'dies-with-service' },
    { prefix: ['/bin/sh', '-c', `${limits} && exec "$@"`, 'cell'], layer: 'limits' },
  ];
};

/** Returns each step that works on top of those before it. Skips a layer that is active already. */
const chooseSteps = async (limits: IsolationLimits): Promise<Step[]> => {
  const chosen: Step[] = [];
  for (const step of listSteps(limits)) {
    if (chosen.some(({ layer }) => layer === step.layer)) continue;
    const prefix = [...chosen.flatMap((earlier) => earlier.prefix), ...step.prefix];
    if (await canRun(prefix)) chosen.push(step);
  }
  return chosen;
};

/** Extension of a cell's files: specs run the sources, whose types Node strips by itself. */
const EXTENSION = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
const PROGRAM_FILES = ['block-memory', 'wasi-stubs', 'store-functions', 'extism-kernel', 'cell'];
const RELATIVE_IMPORT = /^import (?:type )?\{[\w\s,]*\} from '\.\/[^'\n]*';$/gm;

interface CellProgram {
  readonly source: string;
  /** Value of Node's `--input-type`. */
  readonly inputType: 'module' | 'module-typescript';
}

/** Joins the files of a cell into one module. Removes the imports between them. */
const readCellProgram = async (): Promise<CellProgram> => {
  const texts = await Promise.all(
    PROGRAM_FILES.map((name) => readFile(new URL(`./${name}${EXTENSION}`, import.meta.url), 'utf8')),
  );
  const source = [...texts.map((text) => text.replace(RELATIVE_IMPORT, '')), 'serve();'].join('\n');
  return { source, inputType: EXTENSION === '.ts' ? 'module-typescript' : 'module' };
};

const buildNodeArgs = ({ source, inputType }: CellProgram, { memoryMb }: IsolationLimits): string[] => [
  '--permission', // no files, child processes, workers or add-ons
  '--no-warnings',
  '--expose-gc', // for the cell, between calls; a plug-in cannot call JavaScript
  `--max-old-space-size=${HEAP_MB}`,
  // A fixed young generation: calls wait mostly for its collections.
  '--min-semi-space-size=4',
  '--max-semi-space-size=4',
  `--wasm-max-mem-pages=${memoryMb * PAGES_PER_MIB}`,
  `--wasm-max-table-size=${MAX_TABLE_ENTRIES}`,
  `--input-type=${inputType}`,
  '-e',
  source,
];

/**
 * Finds the layers that work on this machine by trying each. A missing layer is reported and never
 * prevents the start.
 */
const planIsolation = async (limits: IsolationLimits): Promise<Isolation> => {
  const program = await readCellProgram();
  const steps = await chooseSteps(limits);
  const executable = process.platform === 'linux' ? await open(process.execPath, 'r') : null;
  const node = executable === null ? process.execPath : '/proc/self/fd/3';
  const [command = node, ...args] = [
    ...steps.flatMap(({ prefix }) => prefix),
    node,
    ...buildNodeArgs(program, limits),
  ];
  return {
    command,
    args,
    executable,
    planned: steps.map(({ layer }) => layer),
    close: async () => executable?.close(),
  };
};

/**
 * Returns the isolation without its planned layers, for a machine where no cell starts with them.
 */
const withoutLayers = async (isolation: Isolation, limits: IsolationLimits): Promise<Isolation> => ({
  ...isolation,
  command: process.execPath,
  args: buildNodeArgs(await readCellProgram(), limits),
  planned: [],
});

/**
 * Returns the layers that a running cell reports, and planned layers that it cannot check itself.
 */
export const activeLayers = ({ planned }: Pick<Isolation, 'planned'>, facts: CellFacts): Layer[] => {
  const isActive: Record<Layer, boolean> = {
    process: true,
    files: !facts.fileAccess,
    network: facts.interfaces.length === 0,
    user: facts.uid === CELL_USER,
    limits: planned.includes('limits'),
    'dies-with-service': planned.includes('dies-with-service'),
  };
  return LAYERS.filter((layer) => isActive[layer]);
};

const openFirst = async (
  isolation: Isolation,
  limits: IsolationLimits,
  logger: Logger,
): Promise<[Isolation, Cell]> => {
  try {
    return [isolation, await openCell(isolation)];
  } catch (error) {
    const { planned } = isolation;
    if (planned.length === 0) throw error;
    logger.warn({ err: error, planned }, 'isolation layers failed, using none');
    const bare = await withoutLayers(isolation, limits);
    return [bare, await openCell(bare)];
  }
};

export interface RunningIsolation {
  readonly open: () => Promise<Cell>;
  /** Layers that are active in a running cell. */
  readonly layers: readonly Layer[];
  /** A first cell, ready for use. */
  readonly first: Cell;
  readonly close: () => Promise<void>;
}

/**
 * Parses a list of required layers, such as `network,user`, or `all`. Throws
 * `SERVICE.BAD_ENVIRONMENT` for an unknown name: a typing error must not leave a layer out.
 */
export const parseRequiredLayers = (text: string | undefined): readonly Layer[] => {
  if (text === undefined || text.trim() === '') return [];
  if (text.trim() === 'all') return LAYERS;
  return text.split(',').map((part) => {
    const layer = LAYERS.find((name) => name === part.trim());
    if (layer === undefined)
      throw invalid(
        'SERVICE.BAD_ENVIRONMENT',
        `the service cannot start: ANTIPHON_SANDBOX_LAYERS: there is no layer "${part.trim()}" (there are all, ${LAYERS.join(', ')})`,
      );
    return layer;
  });
};

/** Throws `SANDBOX.LAYER_MISSING`, and ends the cell, if it runs without a required layer. */
export const assertLayers = (
  isolation: Pick<Isolation, 'planned'>,
  cell: Pick<Cell, 'facts' | 'kill'>,
  required: readonly Layer[],
): void => {
  const layers = activeLayers(isolation, cell.facts);
  const missing = required.filter((layer) => !layers.includes(layer));
  if (missing.length === 0) return;
  cell.kill();
  throw invalid(
    'SANDBOX.LAYER_MISSING',
    `a cell runs without the required isolation layers ${missing.join(', ')} (ANTIPHON_SANDBOX_LAYERS)`,
  );
};

/**
 * Starts the strongest isolation of this machine, tests it with a first cell and logs missing
 * layers. Rejects with `SANDBOX.LAYER_MISSING` where a required layer is missing, also of a later
 * cell.
 */
export const startIsolation = async (
  limits: IsolationLimits,
  logger: Logger,
  required: readonly Layer[] = [],
): Promise<RunningIsolation> => {
  const [isolation, first] = await openFirst(await planIsolation(limits), limits, logger);
  const layers = activeLayers(isolation, first.facts);
  const missing = LAYERS.filter((layer) => !layers.includes(layer));
  if (missing.length > 0) logger.warn({ layers, missing, required }, 'isolation layers missing');
  else logger.info({ layers }, 'isolation complete');
  assertLayers(isolation, first, required);
  const open = async (): Promise<Cell> => {
    const cell = await openCell(isolation);
    assertLayers(isolation, cell, required);
    return cell;
  };
  return { open, layers, first, close: isolation.close };
};
