import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { transient } from '@antiphon/kernel';
import { createExchange } from './exchange.js';
import type { Exchange } from './exchange.js';
import { createReplyDecoder, encodeRequest } from './frame-codec.js';
import type { CellFacts } from './protocol.js';
import type { Wall } from './wall.js';

/** One child process that runs plug-ins, one request at a time. */
export interface Cell {
  readonly pid: number;
  readonly facts: CellFacts;
  /** Digests of the modules that it has compiled. */
  readonly loaded: Set<string>;
  /** At the deadline of a request the process is killed. */
  readonly ask: Exchange['ask'];
  /** False once it has been killed, has ended or broke the protocol. */
  readonly usable: () => boolean;
  readonly kill: () => void;
  /** Resolves when the process has ended, however it did. */
  readonly ended: Promise<void>;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

const START_MS = 15_000;
const MAX_STDERR = 2_000;

const spawnChild = (wall: Wall): Child =>
  spawn(wall.command, wall.args, {
    env: {},
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe', ...(wall.executable === null ? [] : [wall.executable.fd])],
  }) as Child;

/** Keeps the end of what a process says as it dies: V8 reports there that its heap ran out. */
const tailOf = (stream: Readable): (() => string) => {
  let tail = '';
  stream.on('data', (chunk: Buffer) => {
    tail = (tail + chunk.toString()).slice(-MAX_STDERR);
  });
  return () => tail.trim();
};

/** How a cell says that its heap was not enough for what its plug-in asked of it. */
export const OUT_OF_MEMORY = 'out of memory';

const describeExit = (code: number | null, signal: string | null, stderr: string): string => {
  if (/heap out of memory|Allocation failed/.test(stderr)) return OUT_OF_MEMORY;
  return signal === null ? `exit code ${code}` : `signal ${signal}`;
};

const whenEnded = (child: Child, stderr: () => string): Promise<string> =>
  new Promise((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => resolve(describeExit(code, signal, stderr())));
  });

/** Feeds the child's output to the exchange, and resolves with its first frame. */
const listen = (child: Child, exchange: Exchange): Promise<CellFacts> =>
  new Promise((resolve) => {
    const decode = createReplyDecoder((frame) => {
      if (frame.reply.type === 'ready') resolve(frame.reply.facts);
      exchange.receive(frame);
    });
    child.stdout.on('data', (chunk: Buffer) => {
      try {
        decode(chunk);
      } catch (error) {
        exchange.kill(`it broke the protocol: ${(error as Error).message}`);
      }
    });
  });

/** Starts a cell and waits until it is ready; rejects with `SANDBOX.CELL_FAILED` (transient) when it does not get there. */
export const openCell = async (wall: Wall): Promise<Cell> => {
  const child = spawnChild(wall);
  const exchange = createExchange(
    (request, body) => void child.stdin.write(encodeRequest(request, body)),
    () => void child.kill('SIGKILL'),
  );
  // A write into a process that has just ended fails; how it ended is said by `ended`.
  child.stdin.on('error', () => undefined);
  const stderr = tailOf(child.stderr);
  const ending = whenEnded(child, stderr);
  const ended = ending.then((why) => exchange.close(why));
  const failed = ending.then((why) => {
    throw transient('SANDBOX.CELL_FAILED', 'a cell did not start', { data: { why, stderr: stderr() } });
  });
  failed.catch(() => undefined); // later ends are the exchange's
  const kill = (): void => exchange.kill('killed');
  const starting = setTimeout(kill, START_MS);
  const facts = await Promise.race([listen(child, exchange), failed]).finally(() => clearTimeout(starting));
  const { ask, usable } = exchange;
  return { pid: child.pid as number, facts, loaded: new Set(), ask, usable, kill, ended };
};
