import type { EngineSpec } from './engine-specs.mjs';

export type Probe =
  | { readonly ok: true; readonly version: string; readonly folder: string }
  | { readonly ok: false; readonly reason: string };
export declare const findOnPath: (program: string, path?: string) => string | null;
export declare const judgeVersion: (
  engine: EngineSpec,
  version: string | null,
  folder: string,
  major?: number | null,
) => Probe;
