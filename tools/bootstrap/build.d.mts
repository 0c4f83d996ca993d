import type { PrepareContext } from './install.mjs';
import type { Progress } from './progress.mjs';

export declare const hashSources: (root: string) => string;
export declare const isBuilt: (root: string, sources?: string) => boolean;
export declare const buildProject: (context: PrepareContext, progress: Progress) => Promise<void>;
