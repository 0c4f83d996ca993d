import { renderTable, withPart } from './markdown.mjs';

/** Returns the tests of a row, each file once with its titles. */
const renderTests = (tests) => {
  const files = new Map();
  for (const { file, title } of tests)
    files.set(file, [...(files.get(file) ?? []), `"${title.replaceAll('|', '\\|')}"`]);
  return [...files].map(([file, titles]) => `${file} (${titles.join(', ')})`);
};

/** Returns the cells of a row. The tests stand in the column of this index. */
const rowOf =
  (shown, index) =>
  ({ id, cells, note }) => {
    const tests = [...(note ? [note] : []), ...renderTests(shown.get(id) ?? [])].join('; ');
    return cells.toSpliced(index, 0, tests);
  };

/** Returns the reasons why rows and tags do not fit together; none if they do. */
export const findGaps = (tables, shown) => {
  const rows = tables.flatMap((table) => table.rows);
  const ids = new Set(rows.map(({ id }) => id));
  return [
    ...[...shown.keys()].filter((id) => !ids.has(id)).map((id) => `@shows ${id} names no row`),
    ...rows
      .filter(({ id, note }) => !note && !shown.has(id))
      .map(({ id }) => `${id} has no test and no note`),
  ];
};

/** Returns the text of a document with its tables of rows and the tests that show them. */
export const withEvidence = (document, tables, shown) =>
  tables.reduce(
    (text, { part, columns, shownBy, rows }) =>
      withPart(text, part, renderTable(columns, rows.map(rowOf(shown, shownBy)))),
    document,
  );
