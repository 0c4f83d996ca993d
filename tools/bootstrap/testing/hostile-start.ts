import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A run of one program to its end. */
export interface Ended {
  readonly code: number | null;
  readonly output: string;
  readonly ms: number;
}

export interface HostileStart {
  /** The clone. */
  readonly root: string;
  /** Node that runs the scripts, as a user's `npm` does. */
  readonly node: string;
  /** Variables of the user's shell. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly umask?: string;
  readonly uid?: number;
  /** Folder of the home; default a new one for temporary files. */
  readonly home?: string;
}

const COMMAND_MS = 180_000;

/** Quotes a word for the shell. */
const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** A stack that is started, used and stopped by the commands of the README, in one environment. */
export class HostileStack {
  readonly home: string;

  constructor(private readonly start: HostileStart) {
    this.home = start.home ?? mkdtempSync(join(tmpdir(), 'antiphon-hostile-'));
  }

  /** `npm start -- --detach`, without npm. */
  up(): Promise<Ended> {
    return this.run('tools/bootstrap/start.cjs', '--detach');
  }

  /** The command line. */
  cli(...args: string[]): Promise<Ended> {
    return this.run('apps/cli/bin/antiphon.mjs', ...args);
  }

  /** `npm stop`, and the removal of the home. */
  async remove(): Promise<void> {
    await this.run('tools/bootstrap/stop.cjs');
    rmSync(this.home, { recursive: true, force: true });
  }

  private run(program: string, ...args: string[]): Promise<Ended> {
    const { root, node, env, umask = '022', uid } = this.start;
    const began = performance.now();
    const command = [node, join(root, program), ...args].map(quote).join(' ');
    const options = uid === undefined ? {} : { uid, gid: uid };
    const child = spawn('/bin/sh', ['-c', `umask ${umask}; exec ${command}`], {
      ...{ cwd: root, env: { ...env, ANTIPHON_HOME: this.home }, detached: true, ...options },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => void (output += chunk));
    // A command without an end is a fault by itself, such as a poll that never stops.
    const timer = setTimeout(() => process.kill(-(child.pid ?? NaN), 'SIGKILL'), COMMAND_MS);
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => {
        clearTimeout(timer);
        resolve({ code, output, ms: performance.now() - began });
      });
    });
  }
}
