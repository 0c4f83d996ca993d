import { setTimeout as sleep } from 'node:timers/promises';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import type { Progress, ResolvedEngine } from '@antiphon/bootstrap/types';
import { UserError } from '@antiphon/bootstrap/user-error';
import type { Logger } from '@antiphon/observability';
import type { Credentials } from '../home/home.js';
import type { Ports } from '../home/ports.js';
import { StartRefused } from '../process/start-refused.js';
import type { ProcessSpec, SupervisedProcess, SupervisionHooks } from '../process/supervised-process.js';
import type { EngineEntry } from '../stack-json.js';

/** Settings that all engines of a home share. */
export interface EngineContext {
  readonly paths: HomeLayout;
  readonly credentials: Credentials;
  readonly ports: Ports;
  readonly logger: Logger;
  /** False takes any free ports, for many stacks on one machine. */
  readonly usualPorts: boolean;
  /** Records a helper process that must not outlive this one. */
  readonly adopt: (pid: number) => void;
  /** Receives lines for a person. */
  readonly note: (line: string) => void;
  /** True for a restore, which fills a new database where the old one is lost. */
  readonly duringRestore?: boolean;
}

/** How an engine of this home is run. */
export interface EngineProcess {
  readonly spec: ProcessSpec;
  readonly version: string;
  /** Returns `host:port` after the start. */
  address(): string;
}

/** An engine of the stack, managed by this supervisor or external. */
export interface StackEngine {
  /** Null for an external engine. */
  readonly process: SupervisedProcess | null;
  /** Resolves when services may use it. */
  start(): Promise<void>;
  entry(): EngineEntry;
}

export interface EngineOptions {
  readonly context: EngineContext;
  readonly hooks: SupervisionHooks;
  readonly progress: Progress;
}

/** The program to run, or the address of an external engine. */
export type EngineSource =
  | { readonly program: ResolvedEngine; readonly external?: undefined }
  | { readonly program?: undefined; readonly external: string };

/** Describes a managed engine for `stack.json`. */
export const managedEntry = (process: SupervisedProcess, version: string, scheme: string): EngineEntry => {
  const { pid, port, state, restarts } = process.status();
  const address = port === null ? '' : `${scheme}127.0.0.1:${port}`;
  return { pid, port, address, version, external: false, state, restarts };
};

/** Describes an external engine for `stack.json`. */
export const externalEntry = (address: string): EngineEntry => ({
  pid: null,
  port: null,
  address,
  version: null,
  external: true,
  state: 'ready',
  restarts: 0,
});

/** Returns a URL's host and port, without credentials. */
export const addressOfUrl = (value: string, usualPort: number): string => {
  const { hostname, port } = new URL(value);
  return `${hostname}:${port === '' ? usualPort : port}`;
};

/** Runs the check of an external engine; its failure names the variable and the address. */
export const checkExternal = async <T>(
  variable: string,
  address: () => string,
  check: () => Promise<T>,
): Promise<T> => {
  let shown = 'something that is not a URL';
  try {
    shown = address();
    return await check();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UserError(
      `${variable} points at ${shown}, which cannot be used: ${reason}.\n` +
        `What to do: start it, correct the address, or unset ${variable} so that one is started here.`,
      { exitCode: 2, cause: error },
    );
  }
};

const RETRY_MS = 25;
const MAX_RETRY_MS = 500;
/** Time after which a server that responds and refuses ends a start, ms. */
const REFUSED_MS = 10_000;

export interface RetryUntilReady {
  /** Returns true for an error that does not pass by itself. Default: every error may. */
  readonly isRefusal?: (error: unknown) => boolean;
  readonly refusedMs?: number;
}

/**
 * Repeats `attempt` until it succeeds, with growing pauses. Rejects with its last error once the
 * signal aborts, and with a `StartRefused` after ten seconds of refusals: another start would be
 * refused as well.
 */
export const retryUntilReady = async <T>(
  signal: AbortSignal,
  attempt: () => Promise<T>,
  { isRefusal = () => false, refusedMs = REFUSED_MS }: RetryUntilReady = {},
): Promise<T> => {
  let refusedSince: number | null = null;
  for (let pauseMs = RETRY_MS; ; pauseMs = Math.min(MAX_RETRY_MS, pauseMs * 1.5)) {
    let failure: unknown;
    try {
      return await attempt();
    } catch (error) {
      failure = error;
    }
    if (signal.aborted) throw failure;
    const now = performance.now();
    refusedSince = isRefusal(failure) ? (refusedSince ?? now) : null;
    if (refusedSince !== null && now - refusedSince > refusedMs) throw new StartRefused(failure);
    await sleep(pauseMs, undefined, { signal });
  }
};
