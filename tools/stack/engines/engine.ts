import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '@antiphon/observability';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import type { ResolvedEngine } from '@antiphon/bootstrap/types';
import type { Credentials } from '../home/credentials.js';
import type { Ports } from '../home/ports.js';
import type { ProcessSpec } from '../process/supervised-process.js';

/** What every engine of ours is started with. */
export interface EngineContext {
  readonly paths: HomeLayout;
  readonly credentials: Credentials;
  readonly ports: Ports;
  readonly logger: Logger;
  /** False: take any free ports instead of the usual ones, for many stacks on one machine. */
  readonly usualPorts: boolean;
  /** Names a helper process that must not outlive this one. */
  readonly adopt: (pid: number) => void;
}

/** An engine that we run. */
export interface ManagedEngine {
  readonly spec: ProcessSpec;
  readonly version: string;
  /** `host:port`, once it has been started. */
  address(): string;
}

export type StartEngine = (context: EngineContext, program: ResolvedEngine) => ManagedEngine;

const RETRY_MS = 25;

/** Tries until it succeeds or the signal fires; the last failure is then the reason. */
export const retryUntil = async <T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> => {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted) throw error;
    }
    await sleep(RETRY_MS, undefined, { signal });
  }
};
