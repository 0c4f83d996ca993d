/** Runs one round at a time for each key; who comes while one is on its way shares the next, never the current. */
export const createRounds = (run: (key: string) => Promise<number>): ((key: string) => Promise<number>) => {
  const running = new Map<string, Promise<number>>();
  const following = new Map<string, Promise<number>>();
  const start = (key: string): Promise<number> => {
    const round = run(key).finally(() => running.delete(key));
    running.set(key, round);
    return round;
  };
  return (key) => {
    const current = running.get(key);
    if (!current) return start(key);
    const known = following.get(key);
    if (known) return known;
    const next = current
      .catch(() => 0) // its own callers hear of it
      .then(() => {
        following.delete(key);
        return start(key);
      });
    following.set(key, next);
    return next;
  };
};
