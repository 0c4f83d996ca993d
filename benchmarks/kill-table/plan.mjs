/** Boundaries of a turn that the model and the target see, in order. */
export const MARKS = [
  'model 1 asked',
  'model 1 answered',
  'tool asked',
  'tool acted',
  'tool answered',
  'model 2 asked',
  'model 2 answered',
];

/** Milliseconds after a boundary: a commit of the boundary's record lies within them. */
const AFTER_MARK_MS = [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15];
/** Points at delays after the request, one at random in each of as many equal parts of a turn. */
const DELAYS = 132;
/** Of so many points one is used by `--quick`. */
const QUICK_EVERY = 11;

/** A small generator (mulberry32), so that a seed gives the same points. */
export const createRandom = (seed) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
};

const shuffle = (points, random) => {
  for (let i = points.length - 1; i > 0; i -= 1) {
    const other = Math.floor(random() * (i + 1));
    [points[i], points[other]] = [points[other], points[i]];
  }
  return points;
};

/**
 * Returns the 209 points of a turn at which its process is killed, in random order. Eleven come
 * after each boundary, and 132 at delays spread over the measured time of a turn.
 */
export const planKills = ({ turnMs, seed, isQuick }) => {
  const random = createRandom(seed);
  const marks = MARKS.flatMap((mark) => AFTER_MARK_MS.map((afterMs) => ({ group: mark, mark, afterMs })));
  const delays = Array.from({ length: DELAYS }, (_, part) => ({
    group: 'delays',
    delayMs: ((part + random()) / DELAYS) * turnMs,
  }));
  const all = [...marks, ...delays];
  const chosen = isQuick ? all.filter((_, index) => index % QUICK_EVERY === 0) : all;
  return shuffle(chosen, random);
};
