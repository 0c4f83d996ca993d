const HEADER = ['part', 'what it shows', 'figure', 'bound', 'result', 'time'];
/** Longer cells are cut, so that a row stays on one line of a wide terminal. */
const MAX_CELL = 64;

export const formatTime = (ms) => {
  const seconds = Math.round(ms / 1_000);
  const [minutes, rest] = [Math.floor(seconds / 60), seconds % 60];
  return minutes === 0 ? `${rest} s` : `${minutes} min ${rest} s`;
};

const cut = (text) => (text.length > MAX_CELL ? `${text.slice(0, MAX_CELL - 1)}…` : text);

/** A part has a row of its own, followed by a row for each of its figures. */
const rowsOf = ({ part, outcome }) => [
  [part.name, part.shows, outcome.note, '', outcome.result, formatTime(outcome.ms)],
  ...outcome.rows.map(({ what, figure, bound, result }) => ['', what, figure, bound, result, '']),
];

/** Renders one table over all parts, from objects with `part` and `outcome`. */
export const renderTable = (results) => {
  const rows = [HEADER, ...results.flatMap(rowsOf)].map((row) => row.map(cut));
  const widths = HEADER.map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const render = (row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]))
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '-'.repeat(width)).join('  ');
  return [render(rows[0]), rule, ...rows.slice(1).map(render)].join('\n');
};

/** Returns the last line of a run: `20 passed, 1 failed, 2 skipped in 171 min 3 s`. */
export const renderSum = (results) => {
  const count = (result) => results.filter(({ outcome }) => outcome.result === result).length;
  const ms = results.reduce((sum, { outcome }) => sum + outcome.ms, 0);
  return `${count('ok')} passed, ${count('failed')} failed, ${count('skipped')} skipped in ${formatTime(ms)}`;
};
