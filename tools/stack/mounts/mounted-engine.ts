import type { ResolvedEngine } from '@antiphon/bootstrap/types';
import type { Progress } from '@antiphon/bootstrap/types';
import type { EngineContext } from '../engines/engine.js';
import type { SupervisedProcess, SupervisionHooks } from '../process/supervised-process.js';
import type { EngineEntry } from '../stack-json.js';

/** An engine of the stack: one of ours, or one that somebody else runs. */
export interface MountedEngine {
  /** Null for somebody else's. */
  readonly process: SupervisedProcess | null;
  /** Resolves when services may use it. */
  start(): Promise<void>;
  entry(): EngineEntry;
}

export interface MountOptions {
  readonly context: EngineContext;
  readonly hooks: SupervisionHooks;
  readonly progress: Progress;
}

/** The program to run, or the address of what runs already. */
export type EngineSource =
  | { readonly program: ResolvedEngine; readonly external?: undefined }
  | { readonly program?: undefined; readonly external: string };

/** How `stack.json` shows an engine of ours. */
export const managedEntry = (process: SupervisedProcess, version: string, scheme: string): EngineEntry => {
  const { pid, port, state, restarts } = process.status();
  const address = port === null ? '' : `${scheme}127.0.0.1:${port}`;
  return { pid, port, address, version, external: false, state, restarts };
};

/** How `stack.json` shows an engine that somebody else runs. */
export const externalEntry = (address: string): EngineEntry => ({
  pid: null,
  port: null,
  address,
  version: null,
  external: true,
  state: 'ready',
  restarts: 0,
});
