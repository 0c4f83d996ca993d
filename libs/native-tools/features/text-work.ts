import type { TextEdit } from '@antiphon/files-domain';
import { textJobsOf } from '@antiphon/service-host/worker-pool';

export interface EditJob {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly edits: readonly TextEdit[];
  /** Number of removed lines that the caller confirms. */
  readonly removes?: number | undefined;
}

export interface IgnoredJob {
  /** Folder of each `.gitignore`, and its text. */
  readonly files: readonly (readonly [folder: string, bytes: Uint8Array])[];
  readonly paths: readonly string[];
  readonly root: string;
}

/** A line that a search found. */
export interface FoundLine {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

export interface SearchQuery {
  readonly query: string;
  readonly regex: boolean;
  readonly ignoreCase: boolean;
  readonly limit: number;
}

/** Texts of files in one buffer, which moves to the thread without another copy. */
export interface SearchBatch {
  readonly query: SearchQuery;
  readonly bytes: Uint8Array;
  readonly files: readonly (readonly [path: string, length: number])[];
  /** Time after which no further slice is searched, ms. */
  readonly forMs: number;
}

export interface BatchResult {
  readonly found: FoundLine[];
  readonly cutLines: number;
  readonly isTruncated: boolean;
}

export interface SearchResultJob {
  readonly bytes: Uint8Array;
  readonly text: string;
  /** First byte that is searched. */
  readonly from: number;
  readonly limit: number;
}

/** A place of a text in a result: its first byte and its line. */
export interface ResultMatch {
  readonly at: number;
  readonly line: number;
  readonly text: string;
}

export interface ResultMatches {
  readonly matches: ResultMatch[];
  /** Byte of the first place that is left out, or null. */
  readonly next: number | null;
}

export interface LinesJob {
  readonly bytes: Uint8Array;
  /** Number of the first line. */
  readonly from: number;
  readonly count: number;
}

/** Numbered lines of a text from one line on. */
export interface ShownLines {
  readonly text: string;
  /** Number of lines in `text`. */
  readonly shown: number;
  /** True if the end of one of them is left out. */
  readonly isClipped: boolean;
  /** Number of all lines of the file. */
  readonly total: number;
}

/** Functions that threads run. */
export type ToolJobs = {
  readonly editFile: (job: EditJob) => Uint8Array;
  readonly findIgnored: (job: IgnoredJob) => Uint32Array;
  readonly searchBatch: (batch: SearchBatch) => BatchResult;
  readonly searchResult: (job: SearchResultJob) => ResultMatches;
  readonly numberResultLines: (job: LinesJob) => ShownLines;
};

export const toolJobs = textJobsOf<ToolJobs>(import.meta.url);
