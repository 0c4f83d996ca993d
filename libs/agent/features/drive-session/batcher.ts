/**
 * Writes what is handed in as it comes, together with whatever else the same turn of the event loop brings, one write
 * at a time. Each promise settles with the write that its item was part of, or a later one; after an error all reject.
 */
export const createBatcher = <Item>(
  write: (items: readonly Item[]) => Promise<void>,
): ((item: Item) => Promise<void>) => {
  let arrived: Item[] = [];
  let writing: Promise<void> | null = null;
  const writeArrived = async (): Promise<void> => {
    while (arrived.length > 0) {
      await new Promise((resolve) => setImmediate(resolve));
      const items = arrived;
      // Another list from here on: what comes during the write is part of the next one.
      arrived = [];
      await write(items);
    }
    writing = null;
  };
  return (item) => {
    arrived.push(item);
    return (writing ??= writeArrived());
  };
};
