import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FIXTURE = fileURLToPath(new URL('fixtures/remote-worker.mjs', import.meta.url));

interface Line {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A program that serves tools, as a process of its own. */
export class RemoteWorker {
  readonly lines: Line[] = [];
  /** Resolves once the process is gone. */
  readonly ended: Promise<unknown>;
  readonly #process: ChildProcess;
  #wake: (() => void)[] = [];

  private constructor(command: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    const own = { ...process.env, NODE_OPTIONS: '', ...env };
    this.#process = spawn(command, args, { cwd: ROOT, env: own, stdio: ['ignore', 'pipe', 'inherit'] });
    this.ended = once(this.#process, 'exit');
    createInterface({ input: this.#process.stdout! }).on('line', (line) => this.#onLine(line));
  }

  /** Starts the program of the fixture, and waits until its tools are registered. */
  static async start(env: Readonly<Record<string, string>>): Promise<RemoteWorker> {
    const worker = new RemoteWorker(process.execPath, [FIXTURE], env);
    await worker.waitFor('serving');
    return worker;
  }

  /** Starts any program. */
  static run(command: string, args: readonly string[], env: Readonly<Record<string, string>>): RemoteWorker {
    return new RemoteWorker(command, args, env);
  }

  /** Waits for the nth line of a type. */
  async waitFor(type: string, nth = 1): Promise<Line> {
    for (;;) {
      const found = this.lines.filter((line) => line.type === type)[nth - 1];
      if (found) return found;
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  count(type: string): number {
    return this.lines.filter((line) => line.type === type).length;
  }

  /** Ends the program, and waits until it is gone. */
  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    this.#process.kill(signal);
    await this.ended;
  }

  #onLine(line: string): void {
    try {
      this.lines.push(JSON.parse(line) as Line);
    } catch {
      this.lines.push({ type: 'text', line });
    }
    for (const wake of this.#wake.splice(0)) wake();
  }
}
