import { describe, expect, it } from '@jest/globals';
import { readPages } from './list-pages.js';

const ROWS = Array.from({ length: 7 }, (_, index) => ({ id: `run-${index}` }));

/** Reads pages of three rows, and notes their cursors. */
const createReader = (rows: readonly object[] = ROWS) => {
  const cursors: (string | null)[] = [];
  const readPage = async (cursor: string | null) => {
    cursors.push(cursor);
    const from = Number(cursor ?? 0);
    const next = from + 3;
    return { runs: rows.slice(from, next), nextCursor: next < rows.length ? String(next) : null };
  };
  return { cursors, readPage };
};

describe('pages of a list', () => {
  it('are read by their cursors until there are enough', async () => {
    const { cursors, readPage } = createReader();
    expect(await readPages(readPage, 2)).toEqual({ runs: ROWS.slice(0, 6), nextCursor: '6' });
    expect(cursors).toEqual([null, '3']);
  });

  it('end with the list', async () => {
    const { cursors, readPage } = createReader();
    expect(await readPages(readPage, 10)).toEqual({ runs: ROWS, nextCursor: null });
    expect(cursors).toEqual([null, '3', '6']);
  });

  it('have a row that moved between two reads once', async () => {
    const moved = [...ROWS.slice(0, 3), ROWS[2] as object, ...ROWS.slice(3)];
    expect((await readPages(createReader(moved).readPage, 10)).runs).toEqual(ROWS);
  });

  it('have every row of a list without ids', async () => {
    const rows = Array.from({ length: 5 }, () => ({ to: 'idle' }));
    expect((await readPages(createReader(rows).readPage, 10)).runs).toEqual(rows);
  });
});
