import type { Progress } from './progress.mjs';

export type EngineName = 'postgres' | 'nats' | 'temporal';
export interface ResolvedEngine {
  readonly version: string;
  /** The folder that holds its programs. */
  readonly folder: string;
  /** Where it was found, for people. */
  readonly source: string;
}
export interface EnsureContext {
  readonly cache: string;
  readonly env: NodeJS.ProcessEnv;
  readonly root: string;
  readonly postgresMajor: number | null;
  readonly signal?: AbortSignal;
}
export declare const ENGINE_NAMES: readonly EngineName[];
export declare const neededEngines: (env: NodeJS.ProcessEnv) => EngineName[];
export declare const ensureEngines: (
  names: readonly EngineName[],
  context: EnsureContext,
  progress: Progress,
) => Promise<Partial<Record<EngineName, ResolvedEngine>>>;
