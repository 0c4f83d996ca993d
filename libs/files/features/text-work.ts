import { textJobsOf } from '@antiphon/service-host/worker-pool';

/** Functions that threads run. */
export type FileJobs = {
  readonly describeChange: (bytes: readonly [before: Uint8Array, after: Uint8Array]) => string;
};

export const fileJobs = textJobsOf<FileJobs>(import.meta.url);
