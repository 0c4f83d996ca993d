import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import type { FileHandle } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { transient } from '@antiphon/kernel';
import { CellExchange } from './exchange.js';
import type { CellCommand, CellEnd } from './exchange.js';
import { ReplyDecoder, encodeRequest } from './protocol.js';
import type { CellFacts } from './protocol.js';

/** Command line that starts a cell. */
export interface CellLaunch {
  readonly command: string;
  readonly args: readonly string[];
  /** Node's binary, inherited as descriptor 3: a cell's user may not be able to open its path. */
  readonly executable: FileHandle | null;
}

/** One child process that runs plug-ins, one request at a time. */
export interface Cell {
  readonly pid: number;
  readonly facts: CellFacts;
  /** Digests of the modules that the cell has compiled. */
  readonly loaded: Set<string>;
  /** Runs one operation. At its deadline the process is killed. */
  readonly execute: (command: CellCommand) => Promise<CellEnd>;
  /** False once the process was killed, has exited or broke the protocol. */
  readonly isUsable: () => boolean;
  readonly kill: () => void;
  /** Resolves when the process has exited, for any reason. */
  readonly ended: Promise<void>;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

const START_TIMEOUT_MS = 15_000;
const MAX_STDERR_CHARS = 2_000;

const spawnChild = ({ command, args, executable }: CellLaunch): Child =>
  spawn(command, args, {
    env: {},
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe', ...(executable === null ? [] : [executable.fd])],
  }) as Child;

/** Stores the end of a process's error output, where V8 reports an exhausted heap. */
const collectTail = (stream: Readable): (() => string) => {
  let tail = '';
  stream.on('data', (chunk: Buffer) => {
    tail = (tail + chunk.toString()).slice(-MAX_STDERR_CHARS);
  });
  return () => tail.trim();
};

/** End of a cell whose JavaScript heap was too small for its plug-in. */
export const OUT_OF_MEMORY = 'out of memory';

const describeExit = (code: number | null, signal: string | null, stderr: string): string => {
  if (/heap out of memory|Allocation failed/.test(stderr)) return OUT_OF_MEMORY;
  return signal === null ? `exit code ${code}` : `signal ${signal}`;
};

const waitForExit = (child: Child, stderr: () => string): Promise<string> =>
  new Promise((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => resolve(describeExit(code, signal, stderr())));
  });

/** Passes the child's output to the exchange. Resolves with the child's first frame. */
const readReplies = (child: Child, exchange: CellExchange): Promise<CellFacts> =>
  new Promise((resolve) => {
    const decoder = new ReplyDecoder((frame) => {
      if (frame.reply.type === 'ready') resolve(frame.reply.facts);
      exchange.receive(frame);
    });
    child.stdout.on('data', (chunk: Buffer) => {
      try {
        decoder.push(chunk);
      } catch (error) {
        exchange.kill(`it broke the protocol: ${(error as Error).message}`);
      }
    });
  });

/**
 * Starts a cell and waits until it is ready. Rejects with `SANDBOX.CELL_FAILED` (transient) when it
 * exits first.
 */
export const openCell = async (launch: CellLaunch): Promise<Cell> => {
  const child = spawnChild(launch);
  const exchange = new CellExchange({
    write: (request, body) => void child.stdin.write(encodeRequest(request, body)),
    killProcess: () => void child.kill('SIGKILL'),
  });
  // A write to a process that has just exited fails; `ended` reports the exit.
  child.stdin.on('error', () => undefined);
  const stderr = collectTail(child.stderr);
  const exit = waitForExit(child, stderr);
  const ended = exit.then((why) => exchange.close(why));
  const failed = exit.then((why) => {
    throw transient('SANDBOX.CELL_FAILED', 'a cell did not start', { data: { why, stderr: stderr() } });
  });
  failed.catch(() => undefined); // the exchange reports an exit after the start
  const kill = (): void => exchange.kill('killed');
  const startTimer = setTimeout(kill, START_TIMEOUT_MS);
  const ready = Promise.race([readReplies(child, exchange), failed]);
  const facts = await ready.finally(() => clearTimeout(startTimer));
  return {
    pid: child.pid as number,
    facts,
    loaded: new Set(),
    execute: (command) => exchange.execute(command),
    isUsable: () => exchange.isUsable,
    kill,
    ended,
  };
};
