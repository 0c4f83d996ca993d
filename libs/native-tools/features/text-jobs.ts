import { IgnoreRules, checkRemoval, editAll, parseIgnoreFile } from '@antiphon/files-domain';
import { numberLines } from './tools/read-lines.js';
import { searchBatch } from './tools/search-files.js';
import { searchResult } from './tools/search-result.js';
import type { EditJob, IgnoredJob, LinesJob, ToolJobs } from './text-work.js';

const editFile = ({ path, bytes, edits, removes }: EditJob): Uint8Array => {
  const edited = editAll(bytes, edits);
  checkRemoval(path, bytes, edited, removes);
  return edited;
};

/** Returns the indexes of the ignored paths. */
const findIgnored = ({ files, paths, root }: IgnoredJob): Uint32Array => {
  const decoder = new TextDecoder();
  const rules = new IgnoreRules(
    new Map(files.map(([folder, bytes]) => [folder, parseIgnoreFile(decoder.decode(bytes))])),
  );
  return Uint32Array.from(paths.flatMap((path, index) => (rules.isIgnored(path, root) ? [index] : [])));
};

const numberResultLines = ({ bytes, from, count }: LinesJob) => numberLines(bytes, from, count);

/** Functions that run in the threads of `text-work.ts`. They are pure. */
export const jobs: ToolJobs = { editFile, findIgnored, numberResultLines, searchBatch, searchResult };
