/** Maximum characters of a name that are compared: the cost grows with the square of the length. */
const MAX_COMPARED = 64;

const at = (row: readonly number[], index: number): number => row[index] ?? 0;

/** Computes a row of the table of distances from the two rows above it. */
const nextRow = (a: string, b: string, i: number, above: number[], twoAbove: number[]): number[] => {
  const row = [i];
  for (let j = 1; j <= b.length; j++) {
    const substitution = at(above, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
    const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
    const swap = swapped ? at(twoAbove, j - 2) + 1 : Infinity;
    row.push(Math.min(at(above, j) + 1, at(row, j - 1) + 1, substitution, swap));
  }
  return row;
};

/**
 * Returns the Damerau-Levenshtein distance of two short strings. A swap of neighbours counts once.
 */
export const editDistance = (a: string, b: string): number => {
  let twoAbove: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) [twoAbove, above] = [above, nextRow(a, b, i, above, twoAbove)];
  return at(above, b.length);
};

const distanceOf = (wanted: string, candidate: string): number =>
  wanted.length >= 3 && candidate.startsWith(wanted) ? 1 : editDistance(wanted, candidate);

const normalise = (name: string): string => name.slice(0, MAX_COMPARED).toLowerCase().replaceAll('-', '_');

/**
 * Returns the candidate that `name` most likely meant, or null if none is similar. A similar name
 * differs in at most a third of its letters, or is a prefix (`soul` for `soul_path`). The earlier
 * candidate wins a tie.
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
