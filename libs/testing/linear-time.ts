/** Times below it are noise, ms. */
const FLOOR_MS = 4;

/** Returns the processor time of a synchronous run, ms. */
export const processorMs = (run: () => unknown): number => {
  const from = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 1_000;
};

/**
 * Returns how many times longer eight times the size takes: about 8 for a linear run, 64 for a
 * quadratic one. The best of three runs each, so that other load does not count.
 */
export const growthOf = (size: number, run: (size: number) => unknown): number => {
  const best = (of: number) => Math.min(...[1, 2, 3].map(() => processorMs(() => run(of))));
  return Math.max(FLOOR_MS, best(8 * size)) / Math.max(FLOOR_MS, best(size));
};
