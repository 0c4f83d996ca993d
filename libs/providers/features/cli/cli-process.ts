import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { clipText } from '@antiphon/kernel';

/** A program to run for one call. */
export interface CliCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The whole environment of the program. */
  readonly env: Readonly<Record<string, string>>;
  readonly input: string;
}

export interface CliListener {
  readonly onStarted: () => void;
  /** Called with each line of output. Throwing ends the program. */
  readonly onLine: (line: string) => void;
}

/** End of a program. `detail` is the end of its error output, or why it did not start. */
export interface CliEnd {
  readonly hasStarted: boolean;
  readonly status: string;
  readonly detail: string;
}

/** Maximum size of one line, and of the whole output, bytes. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;
export const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
const MAX_DETAIL = 1_000;
/** Time between a request to end and the kill of what still runs, ms. */
const GRACE_MS = 1_000;
/** Limits of 4 GiB of writable memory, 20 minutes of processor time, and 64 MiB for a written file. */
const LIMITS = 'ulimit -c 0 && ulimit -d 4194304 && ulimit -t 1200 && ulimit -f 131072 && ulimit -n 1024';

/** Thrown for output that is larger than its bounds. */
export class CliFlood extends Error {
  override readonly name = 'CliFlood';
}

/** Splits output into lines within bounds. */
class LineSplitter {
  private rest = '';
  private bytes = 0;
  private readonly decoder = new TextDecoder();

  constructor(private readonly onLine: (line: string) => void) {}

  push(chunk: Uint8Array): void {
    this.bytes += chunk.length;
    if (this.bytes > MAX_OUTPUT_BYTES) throw new CliFlood('too much output');
    const lines = (this.rest + this.decoder.decode(chunk, { stream: true })).split('\n');
    this.rest = lines.pop() ?? '';
    for (const line of lines) this.onLine(line);
    if (this.rest.length > MAX_LINE_BYTES) throw new CliFlood('a line that is too long');
  }

  end(): void {
    if (this.rest !== '') this.onLine(this.rest);
    this.rest = '';
  }
}

/** Sends a signal to the process group of a program: also to what it started. */
const signalGroup = ({ pid }: ChildProcess, signal: NodeJS.Signals): void => {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // The group has ended.
  }
};

/**
 * Runs a program in a process group of its own, under limits of the kernel. `signal` ends the whole
 * group, and so does the end of the program itself. Rejects with what `onLine` throws.
 */
export const runCli = (
  { command, args, cwd, env, input }: CliCommand,
  signal: AbortSignal,
  listener: CliListener,
): Promise<CliEnd> =>
  new Promise((resolve, reject) => {
    const limited = ['-c', `${LIMITS} && exec "$@"`, 'limits', command, ...args];
    const child = spawn('/bin/sh', limited, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    let [detail, hasStarted] = ['', false];
    let killTimer: NodeJS.Timeout | undefined;
    const stop = (): void => {
      signalGroup(child, 'SIGTERM');
      killTimer ??= setTimeout(() => signalGroup(child, 'SIGKILL'), GRACE_MS);
    };
    const settle = (finish: () => void): void => {
      clearTimeout(killTimer);
      signal.removeEventListener('abort', stop);
      signalGroup(child, 'SIGKILL');
      finish();
    };
    const splitter = new LineSplitter((line) => listener.onLine(line));
    const guard = (work: () => void): void => {
      try {
        work();
      } catch (error) {
        child.stdout.destroy();
        stop();
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    };
    child.on('spawn', () => {
      hasStarted = true;
      listener.onStarted();
    });
    child.on('error', (error) =>
      settle(() => resolve({ hasStarted, status: 'error', detail: error.message })),
    );
    child.stdout.on('data', (chunk: Buffer) => guard(() => splitter.push(chunk)));
    child.stderr.on('data', (chunk: Buffer) => (detail = (detail + chunk.toString()).slice(-MAX_DETAIL)));
    // A process that the program started may hold its output open.
    child.on('exit', () => signalGroup(child, 'SIGKILL'));
    child.on('close', (code, killed) =>
      settle(() => {
        guard(() => splitter.end());
        resolve({
          hasStarted,
          status: killed ?? `exit ${code}`,
          detail: clipText(detail.trim(), MAX_DETAIL),
        });
      }),
    );
    child.stdin.on('error', () => undefined); // a program may end before it reads all
    child.stdin.end(input);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
