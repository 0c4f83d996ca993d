import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@antiphon/testing';
import { cacheFolder, projectRoot } from '../project.mjs';

/** Nightly specs keep their temporary folders in `TMPDIR`; this one starts a whole stack. */
const HELD_SPEC = 'libs/testing/engines/start-stack.nightly.spec.ts';
export const JEST_ARGUMENTS = ['--config', 'jest.nightly.config.mjs', '--runTestsByPath', HELD_SPEC] as const;
/** Jest without the runner of `npm test`. */
export const JEST_ALONE = [
  process.execPath,
  ...['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', ...JEST_ARGUMENTS],
] as const;
/** Folders of engines and stacks, and the records of a run. */
const OF_RUN = /^antiphon-(test-engines|stack|run|nats)-/;
/** Variables that name engines of this machine. */
const ENGINE_VARIABLES = ['ANTIPHON_POSTGRES_BIN', 'ANTIPHON_NATS_SERVER', 'ANTIPHON_TEMPORAL'];
const START_MS = 120_000;
const END_MS = 45_000;

/** A test run with temporary folders of its own. */
export interface InterruptibleRun {
  /** Ends one process of the run by `signal`. */
  interrupt(signal: NodeJS.Signals): void;
  /** Waits until no process and no folder of the run is left, and returns what is left then. */
  leftovers(): Promise<readonly string[]>;
  /** Kills what is left, for a spec that fails. */
  remove(): void;
}

const read = (path: string): string => {
  try {
    return readFileSync(path, 'latin1').replaceAll('\0', ' ');
  } catch {
    return ''; // it has just ended
  }
};

/** Returns the processes whose command line or environment names `folder`. */
const processesOf = (folder: string): { pid: number; command: string }[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((name) => ({ pid: Number(name), command: read(`/proc/${name}/cmdline`) }))
    .filter(({ pid, command }) => command.includes(folder) || read(`/proc/${pid}/environ`).includes(folder));

const isStackReady = (folder: string): boolean =>
  readdirSync(folder)
    .filter((name) => name.startsWith('antiphon-stack-'))
    .map((name) => join(folder, name, 'stack.json'))
    .some((file) => existsSync(file) && /"state": ?"ready"/.test(read(file)));

/** Variables of this machine alone: the run starts engines of its own. */
const bareEnvironment = (folder: string): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  HOME: process.env['HOME'],
  ...Object.fromEntries(ENGINE_VARIABLES.map((name) => [name, process.env[name]])),
  ANTIPHON_CACHE: cacheFolder(),
  TMPDIR: folder,
});

/** Starts a run of a nightly spec, and waits until its engines and a stack of the spec are ready. */
export const startInterruptibleRun = async ([program, ...args]: readonly [
  string,
  ...string[],
]): Promise<InterruptibleRun> => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-interrupt-'));
  // Other users can search it, so that PostgreSQL's user finds its data there.
  chmodSync(folder, 0o755);
  const child: ChildProcess = spawn(program, args, {
    cwd: projectRoot,
    env: bareEnvironment(folder),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const collect = (chunk: Buffer): void => void (output += chunk.toString());
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  const remove = (): void => {
    for (const { pid } of processesOf(folder)) process.kill(pid, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  const left = (): string[] => [
    ...processesOf(folder).map(({ command: line }) => line),
    // Other folders are caches, such as the programs of PostgreSQL for its user.
    ...readdirSync(folder).filter((name) => OF_RUN.test(name)),
  ];
  try {
    await until(() => child.exitCode !== null || isStackReady(folder), START_MS);
    if (child.exitCode !== null) throw new Error(`the run ended before it was interrupted:\n${output}`);
  } catch (error) {
    remove();
    throw error;
  }
  return {
    interrupt: (signal) => void child.kill(signal),
    leftovers: async () => {
      await until(() => left().length === 0, END_MS).catch(() => undefined);
      return left();
    },
    remove,
  };
};
