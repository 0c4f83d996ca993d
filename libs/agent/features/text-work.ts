import { WorkerPool } from '@antiphon/service-host/worker-pool';
import type { jobs } from './text-jobs.js';

/** Specs run the sources, but a thread runs the compiled program. */
const MODULE = import.meta.url.endsWith('.ts')
  ? new URL('./dist/text-jobs.js', import.meta.url)
  : new URL('./text-jobs.js', import.meta.url);

/**
 * Each worker thread of this process for work on texts of members, agents and tools whose time has
 * no small bound. They start with the first work.
 */
export const textWork = new WorkerPool<typeof jobs>({ module: MODULE });

/** Maximum time of one piece of work, ms. */
export const TEXT_DEADLINE_MS = 5_000;
