/**
 * Finds the places of a sequence, also overlapping ones, up to a maximum. The time is linear in
 * both lengths (Knuth, Morris and Pratt): a native search is not, for texts that repeat.
 */
export const findSequence = <T>(items: ArrayLike<T>, sought: ArrayLike<T>, most: number): number[] => {
  const found: number[] = [];
  if (sought.length === 0 || sought.length > items.length) return found;
  const back = backSteps(sought);
  let matched = 0;
  for (let at = 0; at < items.length && found.length < most; at++) {
    const item = items[at];
    while (matched > 0 && item !== sought[matched]) matched = back[matched - 1] ?? 0;
    if (item === sought[matched]) matched++;
    if (matched < sought.length) continue;
    found.push(at - matched + 1);
    matched = back[matched - 1] ?? 0;
  }
  return found;
};

/** Returns, for each start of a sequence, the length of its longest own start that also ends it. */
const backSteps = <T>(sought: ArrayLike<T>): Int32Array => {
  const back = new Int32Array(sought.length);
  let length = 0;
  for (let at = 1; at < sought.length; at++) {
    while (length > 0 && sought[at] !== sought[length]) length = back[length - 1] ?? 0;
    if (sought[at] === sought[length]) length++;
    back[at] = length;
  }
  return back;
};
