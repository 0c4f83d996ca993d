import { describeChange } from './trees/describe-change.js';
import type { FileJobs } from './text-work.js';

/** Functions that run in the threads of `text-work.ts`. They are pure. */
export const jobs: FileJobs = {
  describeChange: ([before, after]) => describeChange(before, after),
  // The parsers are loaded by the first document only.
  readOffice: async (bytes) => {
    const { readOffice } = await import('./documents/read-office.js');
    return readOffice(bytes);
  },
  readPdf: async ([bytes, maxPages]) => {
    const { readPdf } = await import('./documents/read-pdf.js');
    return readPdf(bytes, maxPages);
  },
};
