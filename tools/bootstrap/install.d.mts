import type { Progress } from './progress.mjs';

export interface PrepareContext {
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
  readonly adopt?: (pid: number) => void;
}
export declare const isInstalled: (root: string) => boolean;
export declare const installPackages: (context: PrepareContext, progress: Progress) => Promise<void>;
