import { nextEventLoopRound } from './sleep.js';

/**
 * Collects the items of one event-loop round and writes them together, one write at a time. Each
 * promise settles with the write that its item was part of, or a later one. After a failed write
 * every later item rejects as well.
 */
export const createBatcher = <Item>(
  write: (items: readonly Item[]) => Promise<void>,
): ((item: Item) => Promise<void>) => {
  let pending: Item[] = [];
  let writing: Promise<void> | null = null;
  const writePending = async (): Promise<void> => {
    while (pending.length > 0) {
      await nextEventLoopRound();
      const items = pending;
      // Items that arrive during the write belong to the next batch.
      pending = [];
      await write(items);
    }
    writing = null;
  };
  return (item) => {
    pending.push(item);
    return (writing ??= writePending());
  };
};

/**
 * Coalesces concurrent calls for one key: one run at a time, and all calls that arrive during a run
 * share the run after it. A caller never shares a run that began before its call.
 */
export const createCoalescer = <T>(run: (key: string) => Promise<T>): ((key: string) => Promise<T>) => {
  const running = new Map<string, Promise<T>>();
  const following = new Map<string, Promise<T>>();
  const start = (key: string): Promise<T> => {
    const current = run(key).finally(() => running.delete(key));
    running.set(key, current);
    return current;
  };
  return (key) => {
    const current = running.get(key);
    if (!current) return start(key);
    const known = following.get(key);
    if (known) return known;
    const afterCurrent = (): Promise<T> => {
      following.delete(key);
      return start(key);
    };
    // A failure of the current run is reported to its own callers only.
    const next = current.then(afterCurrent, afterCurrent);
    following.set(key, next);
    return next;
  };
};

/**
 * Returns a function that reads answers together: questions that arrive during a run wait for the
 * next one. `read` gets at most `limit` questions and returns their answers in order. Its error
 * rejects all of them, and no later one.
 */
export const createReadBatcher = <Question, Answer>(
  read: (questions: readonly Question[]) => Promise<readonly Answer[]>,
  limit: number,
): ((question: Question) => Promise<Answer>) => {
  interface Waiting {
    readonly question: Question;
    readonly resolve: (answer: Promise<Answer>) => void;
  }
  let pending: Waiting[] = [];
  let isReading = false;
  const readPending = async (): Promise<void> => {
    while (pending.length > 0) {
      await nextEventLoopRound();
      const batch = pending.slice(0, limit);
      pending = pending.slice(limit);
      const answers = (async () => read(batch.map(({ question }) => question)))();
      batch.forEach(({ resolve }, index) => resolve(answers.then((all) => all[index] as Answer)));
      await answers.catch(() => undefined);
    }
    isReading = false;
  };
  return (question) =>
    new Promise((resolve) => {
      pending.push({ question, resolve });
      if (isReading) return;
      isReading = true;
      void readPending();
    });
};
