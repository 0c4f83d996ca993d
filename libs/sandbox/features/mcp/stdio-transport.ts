import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import type { JsonRpcMessage, Transport } from './client-library.port.js';
import { MAX_MESSAGES_PER_SECOND, MAX_MESSAGE_BYTES, McpFlood, reading } from './mcp-flood.js';

/** A server that the operator's file names. */
export interface StdioServer {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the process. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

export interface StdioListener {
  /** Called for a line of standard error, and for one of standard output that is no message. */
  readonly onNoise: (line: string) => void;
}

const MAX_NOISE_CHARS = 500;
const NEWLINE = 0x0a;
/** Time that a server has to end after its standard input was closed, and after SIGTERM, ms. */
const GRACE_MS = 300;
/**
 * Ends the process group `$1` once its standard input ends. The pipe ends also if this process is
 * killed, which no handler of its own could notice.
 */
const GUARD = 'read -r line; kill -9 -- "-$1"';

const killGroup = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group has no process any more.
  }
};

/** Reads lines of bounded size. */
class LineReader {
  private chunks: Buffer[] = [];
  private bytes = 0;

  constructor(private readonly onLine: (line: string) => void) {}

  /** Forgets an incomplete line. */
  reset(): void {
    reading.release(this.bytes);
    this.chunks = [];
    this.bytes = 0;
  }

  /** Throws `McpFlood` for a line that is too long. */
  push(chunk: Buffer): void {
    let rest = chunk;
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      this.keep(rest.subarray(0, end));
      const line = Buffer.concat(this.chunks).toString('utf8');
      this.reset();
      rest = rest.subarray(end + 1);
      this.onLine(line);
    }
    this.keep(rest);
  }

  private keep(part: Buffer): void {
    if (this.bytes + part.length > MAX_MESSAGE_BYTES)
      throw new McpFlood(`a message has over ${MAX_MESSAGE_BYTES} bytes`);
    reading.take(part.length);
    this.bytes += part.length;
    if (part.length > 0) this.chunks.push(part);
  }
}

const parseMessage = (line: string): JsonRpcMessage | null => {
  if (!line.startsWith('{')) return null;
  try {
    const value = JSON.parse(line) as { jsonrpc?: unknown };
    return value.jsonrpc === '2.0' ? (value as JsonRpcMessage) : null;
  } catch {
    return null; // servers print to standard output
  }
};

/**
 * Runs a server as a process group of its own and speaks to it by its standard input and output.
 * The group is killed when the transport closes, and when this process ends in any way.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport['onmessage'];
  /** With `pid`, by which the client library tells programs from other servers. */
  readonly stderr = null;

  private child: ChildProcess | undefined;
  private guard: ChildProcess | undefined;
  private exited: Promise<void> = Promise.resolve();
  private isClosed = false;
  private second = 0;
  private messages = 0;

  constructor(
    private readonly server: StdioServer,
    private readonly listener: StdioListener,
  ) {}

  get pid(): number | null {
    return this.child?.pid ?? null;
  }

  async start(): Promise<void> {
    const { command, args, env, cwd } = this.server;
    const child = spawn(command, args, { cwd, env: { ...env }, detached: true, stdio: 'pipe' });
    this.child = child;
    this.exited = new Promise((resolve) => {
      child.once('exit', () => resolve());
      child.once('error', () => resolve());
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    child.on('error', (error) => this.onerror?.(error));
    this.startGuard(child.pid ?? 0);
    this.read(child);
    void this.exited.then(() => this.close());
  }

  async send(message: JsonRpcMessage): Promise<void> {
    const stdin = this.child?.stdin;
    if (this.isClosed || !stdin?.writable) throw new Error('the process of the server has ended');
    await new Promise<void>((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
    });
  }

  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    const pid = this.child?.pid;
    if (pid !== undefined) {
      this.child?.stdin?.end();
      await Promise.race([this.exited, delay(GRACE_MS)]);
      killGroup(pid, 'SIGTERM');
      await Promise.race([this.exited, delay(GRACE_MS)]);
      // Also after the exit of the server: it may have left processes of its group.
      killGroup(pid, 'SIGKILL');
      this.guard?.kill('SIGKILL');
    }
    this.onclose?.();
  }

  private startGuard(pid: number): void {
    const guard = spawn('/bin/sh', ['-c', GUARD, 'sh', String(pid)], {
      ...{ env: {}, cwd: '/', detached: true },
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    guard.on('error', (error) => this.onerror?.(error));
    guard.stdin?.on('error', () => undefined);
    guard.unref();
    this.guard = guard;
  }

  private read(child: ChildProcess): void {
    const output = new LineReader((line) => this.accept(line));
    const errors = new LineReader((line) => this.listener.onNoise(line.slice(0, MAX_NOISE_CHARS)));
    const readBy =
      (reader: LineReader) =>
      (chunk: Buffer): void => {
        if (this.isClosed) return reader.reset();
        try {
          reader.push(chunk);
        } catch (error) {
          reader.reset();
          this.onerror?.(error as Error);
          void this.close();
        }
      };
    child.once('close', () => [output, errors].forEach((reader) => reader.reset()));
    child.stdout?.on('data', readBy(output));
    child.stderr?.on('data', readBy(errors));
    for (const stream of [child.stdin, child.stdout, child.stderr])
      stream?.on('error', (error) => this.onerror?.(error));
  }

  private accept(line: string): void {
    const message = parseMessage(line.trim());
    this.count();
    if (message === null) this.listener.onNoise(line.slice(0, MAX_NOISE_CHARS));
    else if (!this.isClosed) this.onmessage?.(message);
  }

  /** Throws `McpFlood` if the server sends too many lines in a second. */
  private count(): void {
    const second = Math.floor(performance.now() / 1_000);
    if (second !== this.second) this.messages = 0;
    this.second = second;
    this.messages += 1;
    if (this.messages > MAX_MESSAGES_PER_SECOND)
      throw new McpFlood(`the server sends over ${MAX_MESSAGES_PER_SECOND} messages in a second`);
  }
}
