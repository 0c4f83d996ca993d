import type { EngineSpec } from './engine-specs.mjs';

export interface ResolveContext {
  readonly cache: string;
  readonly env: NodeJS.ProcessEnv;
  readonly root: string;
  readonly major?: number | null;
  readonly signal?: AbortSignal;
  readonly onProgress?: (text: string) => void;
}
export declare const resolveEngine: (
  engine: EngineSpec,
  context: ResolveContext,
) => Promise<{ readonly version: string; readonly folder: string; readonly source: string }>;
