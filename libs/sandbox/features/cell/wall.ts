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

const NOBODY = 65_534;
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

const candidates = ({ memoryMb, cpuSeconds }: WallLimits): { prefix: string[]; layers: Layer[] }[] => {
  const kib = (BASE_DATA_MB + 4 * memoryMb) * 1024;
  // RLIMIT_DATA, not RLIMIT_AS: it counts what can be written to, not the guard regions that V8 reserves.
  const limits = `ulimit -c 0 && ulimit -f 0 && ulimit -n 64 && ulimit -d ${kib} && ulimit -t ${cpuSeconds} && exec "$@"`;
  const user = [
    `--reuid=${NOBODY}`,
    `--regid=${NOBODY}`,
    '--clear-groups',
    '--inh-caps=-all',
    '--bounding-set=-all',
  ];
  const setpriv = ['setpriv', '--no-new-privs', '--pdeathsig=KILL', ...(isRoot() ? user : [])];
  return [
    { prefix: ['unshare', ...(isRoot() ? [] : ['--user']), '--net'], layers: ['network'] },
    { prefix: setpriv, layers: isRoot() ? ['user', 'dies-with-service'] : ['dies-with-service'] },
    { prefix: ['/bin/sh', '-c', limits, 'cell'], layers: ['limits'] },
  ];
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

const assemble = (
  prefixes: readonly string[][],
  node: readonly string[],
): { command: string; args: string[] } => {
  const [command = '', ...args] = [...prefixes.flat(), ...node];
  return { command, args };
};

/**
 * Finds out which layers work on this machine, each by trying it. A machine that lacks one still gets cells:
 * what is missing is reported, never a reason not to start.
 */
export const buildWall = async (limits: WallLimits): Promise<Wall> => {
  const program = await readCellProgram();
  const tried = await Promise.all(
    candidates(limits).map(async (candidate) => ({ ...candidate, works: await works(candidate.prefix) })),
  );
  const chosen = tried.filter((candidate) => candidate.works);
  const executable = process.platform === 'linux' ? await open(process.execPath, 'r') : null;
  const node = [executable === null ? process.execPath : '/proc/self/fd/3', ...nodeArgs(program, limits)];
  return {
    ...assemble(
      chosen.map((candidate) => candidate.prefix),
      node,
    ),
    executable,
    planned: chosen.flatMap((candidate) => candidate.layers),
    close: async () => executable?.close(),
  };
};

/** The wall without what `planned` added: for a machine where each layer works alone, but not all together. */
export const bareWall = async (wall: Wall, limits: WallLimits): Promise<Wall> => ({
  ...wall,
  ...assemble([], [process.execPath, ...nodeArgs(await readCellProgram(), limits)]),
  planned: [],
});

/** What holds in a running cell: its own findings where it can tell, the plan where it cannot. */
export const activeLayers = ({ planned }: Pick<Wall, 'planned'>, facts: CellFacts): Layer[] => {
  const holds: Record<Layer, boolean> = {
    process: true,
    files: !facts.fileAccess,
    network: facts.interfaces.length === 0,
    user: isRoot() && facts.uid === NOBODY,
    limits: planned.includes('limits'),
    'dies-with-service': planned.includes('dies-with-service'),
  };
  return LAYERS.filter((layer) => holds[layer]);
};
