import { describeChange } from './trees/describe-change.js';
import type { FileJobs } from './text-work.js';

/** Functions that run in the threads of `text-work.ts`. They are pure. */
export const jobs: FileJobs = {
  describeChange: ([before, after]) => describeChange(before, after),
};
