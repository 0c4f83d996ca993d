import { execFile } from 'node:child_process';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { MAX_TABLE_ENTRIES } from '@antiphon/sandbox-domain';
import { readCellProgram } from './cell-program.js';
import type { CellProgram } from './cell-program.js';
import type { CellFacts } from './protocol.js';

/** What stands between a plug-in and the machine, beside the engine's own checks. */
export const LAYERS = ['process', 'files', 'network', 'user', 'limits', 'dies-with-service'] as const;
export type Layer = (typeof LAYERS)[number];

/** How cells are started on this machine. */
export interface Wall {
  readonly command: string;
  readonly args: readonly string[];
  /** Node's own binary, inherited as descriptor 3: its path may be closed to the user of a cell. */
  readonly executable: FileHandle | null;
  /** Layers whose command line was seen to work here. */
  readonly planned: readonly Layer[];
  readonly close: () => Promise<void>;
}

export interface WallLimits {
  /** The largest `memory_mb` of any plug-in. */
  readonly memoryMb: number;
  /** Processor time after which the kernel ends a cell, should nobody be left to do it. */
  readonly cpuSeconds: number;
}

/**
 * Not 65534, which is also nobody, the user of PostgreSQL where we run it as root, and what a user namespace shows
 * for every user: what a plug-in breaks out into must own no file and no other process.
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
/** What Node maps writable before any plug-in runs (its code range is 512 MiB), with room for HEAP_MB. */
const BASE_DATA_MB = 768;
const PROBE_MS = 5_000;

/** Tells whether a command line that ends in a program works here, by running `true` through it. */
const works = (prefix: readonly string[]): Promise<boolean> =>
  new Promise((resolve) => {
    const [command = '', ...args] = prefix;
    execFile(command, [...args, 'true'], { timeout: PROBE_MS, env: {} }, (error) => resolve(error === null));
  });

const isRoot = (): boolean => process.getuid?.() === 0;

interface Step {
  readonly prefix: readonly string[];
  readonly layer: Layer;
}

/** In an order that matters: a new user namespace takes the death signal back, and root is given up before it. */
const stepsFor = ({ memoryMb, cpuSeconds }: WallLimits): Step[] => {
  const kib = (BASE_DATA_MB + 4 * memoryMb) * 1024;
  // RLIMIT_DATA, not RLIMIT_AS: it counts what can be written to, not the guard regions that V8 reserves.
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

/** Takes each step that works on top of those before it; a layer that holds already is not sought again. */
const chooseSteps = async (limits: WallLimits): Promise<Step[]> => {
  const chosen: Step[] = [];
  for (const step of stepsFor(limits)) {
    if (chosen.some(({ layer }) => layer === step.layer)) continue;
    const prefix = [...chosen.flatMap((earlier) => earlier.prefix), ...step.prefix];
    if (await works(prefix)) chosen.push(step);
  }
  return chosen;
};

const nodeArgs = ({ source, inputType }: CellProgram, { memoryMb }: WallLimits): string[] => [
  '--permission', // no files, child processes, workers or add-ons
  '--no-warnings',
  '--expose-gc', // for the cell, between calls; a plug-in has no JavaScript to call it from
  `--max-old-space-size=${HEAP_MB}`,
  // A young generation of this size from the start: its collections are what a call waits for most.
  '--min-semi-space-size=4',
  '--max-semi-space-size=4',
  `--wasm-max-mem-pages=${memoryMb * PAGES_PER_MIB}`,
  `--wasm-max-table-size=${MAX_TABLE_ENTRIES}`,
  `--input-type=${inputType}`,
  '-e',
  source,
];

/**
 * Finds out which layers work on this machine, each by trying it. A machine that lacks one still gets cells:
 * what is missing is reported, never a reason not to start.
 */
export const buildWall = async (limits: WallLimits): Promise<Wall> => {
  const program = await readCellProgram();
  const steps = await chooseSteps(limits);
  const executable = process.platform === 'linux' ? await open(process.execPath, 'r') : null;
  const node = executable === null ? process.execPath : '/proc/self/fd/3';
  const [command = node, ...args] = [
    ...steps.flatMap(({ prefix }) => prefix),
    node,
    ...nodeArgs(program, limits),
  ];
  return {
    command,
    args,
    executable,
    planned: steps.map(({ layer }) => layer),
    close: async () => executable?.close(),
  };
};

/** The wall without what `planned` added: for a machine where `true` runs behind it, but no cell does. */
export const bareWall = async (wall: Wall, limits: WallLimits): Promise<Wall> => ({
  ...wall,
  command: process.execPath,
  args: nodeArgs(await readCellProgram(), limits),
  planned: [],
});

/** What holds in a running cell: its own findings where it can tell, the plan where it cannot. */
export const activeLayers = ({ planned }: Pick<Wall, 'planned'>, facts: CellFacts): Layer[] => {
  const holds: Record<Layer, boolean> = {
    process: true,
    files: !facts.fileAccess,
    network: facts.interfaces.length === 0,
    user: facts.uid === CELL_USER,
    limits: planned.includes('limits'),
    'dies-with-service': planned.includes('dies-with-service'),
  };
  return LAYERS.filter((layer) => holds[layer]);
};
