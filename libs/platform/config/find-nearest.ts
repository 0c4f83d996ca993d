/** Beyond this many characters a name is compared by its beginning only: distances cost length squared. */
const MAX_COMPARED = 64;

/** Damerau-Levenshtein (adjacent transpositions count once) of two short strings. */
export const editDistance = (a: string, b: string): number => {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let best = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, (beforeLast[j - 2] ?? 0) + 1);
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
};

const distanceOf = (wanted: string, candidate: string): number =>
  wanted.length >= 3 && candidate.startsWith(wanted) ? 1 : editDistance(wanted, candidate);

const normalise = (name: string): string => name.slice(0, MAX_COMPARED).toLowerCase().replaceAll('-', '_');

/**
 * The candidate that `name` most likely meant, or null when none is near: at most a third of its letters differ,
 * or it is the candidate's beginning (`soul` → `soul_path`). Ties go to the earlier candidate.
 */
export const findNearest = (name: string, candidates: Iterable<string>): string | null => {
  const wanted = normalise(name);
  let nearest: string | null = null;
  let shortest = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = distanceOf(wanted, normalise(candidate));
    if (distance < shortest) {
      shortest = distance;
      nearest = candidate;
    }
  }
  return nearest;
};
