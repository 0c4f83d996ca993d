import { structuredPatch } from 'diff';

/** Bounds of the search for the shortest difference, as the gateway has them. */
const SEARCH = { maxEditLength: 2_000, timeout: 250 } as const;

/** The start of an empty range is the line before it. */
const startOf = (start: number, lines: number): number => (lines === 0 ? start - 1 : start);

/**
 * Returns the unified diff of two texts, equal to the one of the API for short ones; null if they
 * differ too much for one.
 */
export const diffTexts = (before: string, after: string): string | null => {
  const patch = structuredPatch('a', 'b', before, after, undefined, undefined, { context: 3, ...SEARCH });
  if (!patch) return null;
  return patch.hunks
    .flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
      `@@ -${startOf(oldStart, oldLines)},${oldLines} +${startOf(newStart, newLines)},${newLines} @@`,
      ...lines,
    ])
    .join('\n');
};
