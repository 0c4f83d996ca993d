/** One page of a list of the API: rows, and the cursor of the next page. */
export interface ListPage {
  readonly nextCursor: string | null;
}

const idOf = (row: unknown): unknown => (row as { readonly id?: unknown } | null)?.id;

/** Joins rows. A row that moved from one page to the next between two reads is listed once. */
const joinRows = (before: readonly unknown[], next: readonly unknown[]): readonly unknown[] => {
  const known = new Set<unknown>(before.map(idOf).filter((id) => id !== undefined));
  return [...before, ...next.filter((row) => !known.has(idOf(row)))];
};

const joinPages = <T extends ListPage>(before: T, next: T): T => {
  const earlier = before as Readonly<Record<string, unknown>>;
  const joined = Object.entries(next).map(([name, value]) => {
    const rows = earlier[name];
    return [name, Array.isArray(value) && Array.isArray(rows) ? joinRows(rows, value) : value] as const;
  });
  return Object.fromEntries(joined) as unknown as T;
};

/** Reads pages of a list, one after the other, until there are enough of them or it ends. */
export const readPages = async <T extends ListPage>(
  readPage: (cursor: string | null) => Promise<T>,
  count: number,
): Promise<T> => {
  let list = await readPage(null);
  for (let read = 1; read < count && list.nextCursor !== null; read++)
    list = joinPages(list, await readPage(list.nextCursor));
  return list;
};
