import type { OfficeType } from '@antiphon/contracts/agent';
import { textJobsOf } from '@antiphon/service-host/worker-pool';

/** Text of a document. */
export interface DocumentText {
  readonly text: string;
  /** Null for a format without pages. */
  readonly pages: number | null;
}

export type OfficeProblem = 'unreadable' | 'encrypted' | 'unpacked_too_large' | 'too_many_parts';

/** A file whose text is not read. `detail` is the limit, or empty. */
export interface UnreadOffice {
  readonly problem: OfficeProblem;
  readonly detail: number | '';
}

/** Text of an office file, or why it has none. */
export type OfficeText = { readonly mediaType: OfficeType; readonly text: string } | UnreadOffice;

/** Functions that threads run. */
export type FileJobs = {
  readonly describeChange: (bytes: readonly [before: Uint8Array, after: Uint8Array]) => string;
  readonly readOffice: (bytes: Uint8Array) => Promise<OfficeText | null>;
  readonly readPdf: (file: readonly [bytes: Uint8Array, maxPages: number]) => Promise<DocumentText>;
};

export const fileJobs = textJobsOf<FileJobs>(import.meta.url);
