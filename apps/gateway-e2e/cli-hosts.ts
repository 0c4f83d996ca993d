import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { CliRun } from './stack-under-test.js';

const HOST = fileURLToPath(new URL('fixtures/cli-host.mjs', import.meta.url));

/** Maximum number of processes. Further commands wait for a free one. */
const MOST = 4;

type Reply = CliRun & { readonly error: string | null };

/**
 * Processes that run commands of the command line, each one after another: a command costs a third
 * of one with a process of its own. Concurrent commands have different processes.
 */
export class CliHosts {
  private readonly idle: ChildProcess[] = [];
  private readonly all: ChildProcess[] = [];
  private readonly waiting: ((host: ChildProcess) => void)[] = [];

  async run(args: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<CliRun> {
    const host = this.idle.pop() ?? (this.all.length < MOST ? this.start() : await this.nextFree());
    const done = new AbortController();
    const { signal } = done;
    const ended = once(host, 'exit', { signal }).then(() => {
      throw new Error(`the process of "${args.join(' ')}" ended`);
    });
    const replied = once(host, 'message', { signal }) as Promise<[Reply]>;
    host.send({ args, env, cwd });
    const [{ error, ...run }] = await Promise.race([replied, ended]).finally(() => done.abort());
    if (error !== null) throw new Error(error);
    this.free(host);
    return run;
  }

  close(): void {
    for (const host of this.all) host.kill();
  }

  private nextFree(): Promise<ChildProcess> {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  private free(host: ChildProcess): void {
    const next = this.waiting.shift();
    if (next) next(host);
    else this.idle.push(host);
  }

  private start(): ChildProcess {
    const host = fork(HOST, { env: { ...process.env, NODE_OPTIONS: '' }, execArgv: [] });
    this.all.push(host);
    return host;
  }
}
