import { textJobsOf } from '@antiphon/service-host/worker-pool';

/** Text of a document. */
export interface DocumentText {
  readonly text: string;
  /** Null for a format without pages. */
  readonly pages: number | null;
}

/** Functions that threads run. */
export type FileJobs = {
  readonly describeChange: (bytes: readonly [before: Uint8Array, after: Uint8Array]) => string;
  readonly readPdf: (file: readonly [bytes: Uint8Array, maxPages: number]) => Promise<DocumentText>;
};

export const fileJobs = textJobsOf<FileJobs>(import.meta.url);
