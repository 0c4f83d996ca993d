import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const CLIENT = fileURLToPath(new URL('fixtures/send-requests.mjs', import.meta.url));

export interface HostileRequest {
  /** Default: `GET`. */
  readonly method?: string;
  readonly path: string;
  readonly body?: string;
}

export interface HostileClientOptions {
  readonly url: string;
  readonly token: string;
  readonly requests: readonly HostileRequest[];
  /** Requests at once. */
  readonly parallel: number;
}

export interface HostileClient {
  /** Returns true once every request has its response. */
  readonly hasEnded: () => boolean;
  /** Number of responses by status; the name of an error for a request without one. */
  readonly statuses: Promise<Readonly<Record<string, number>>>;
}

/** Starts a client in a process of its own, which ends after its last response. */
export const startHostileClient = (options: HostileClientOptions): HostileClient => {
  let isDone = false;
  const child = spawn(process.execPath, [CLIENT], {
    env: { PATH: process.env['PATH'] },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(JSON.stringify(options));
  const statuses = text(child.stdout).then((line) => JSON.parse(line) as Record<string, number>);
  void statuses.finally(() => (isDone = true)).catch(() => undefined);
  return { hasEnded: () => isDone, statuses };
};
