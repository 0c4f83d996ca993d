/** Rows of a chart: a time, ms, and the value of each series. */
export interface ChartRow {
  readonly at: number;
  readonly values: readonly (number | null)[];
}

/** Width and height of a drawing. It is stretched to its place. */
export const WIDTH = 100;
export const HEIGHT = 40;

/** Returns the lowest round number that is not below a value: 1, 2 or 5 times a power of ten. */
export const roundUp = (value: number): number => {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 5, 10].find((each) => each * power >= value * 0.999_999) ?? 10;
  // Without the error of a power such as 10 ** -3.
  return Number((step * power).toPrecision(12));
};

/** Returns the largest value of a chart. */
export const mostOf = (rows: readonly ChartRow[]): number =>
  Math.max(0, ...rows.flatMap(({ values }) => values.map((value) => value ?? 0)));

/** Returns the place of a row from left to right. A row that is alone is in the middle. */
const placeOf = (rows: readonly ChartRow[], { at }: ChartRow): number => {
  const [start, end] = [rows[0]?.at ?? at, rows.at(-1)?.at ?? at];
  return end === start ? WIDTH / 2 : ((at - start) / (end - start)) * WIDTH;
};

const print = (value: number): string => String(Math.round(value * 100) / 100);

interface Paths {
  readonly line: string;
  readonly dots: string;
}

/** Returns the line of a series as a path. A gap ends it, and a point that is alone is a dot. */
export const pathsOf = (rows: readonly ChartRow[], series: number, top: number): Paths => {
  let [line, dots] = ['', ''];
  let isDrawing = false;
  for (const [index, row] of rows.entries()) {
    const value = row.values[series] ?? null;
    const isAlone = !isDrawing && (rows[index + 1]?.values[series] ?? null) === null;
    if (value !== null) {
      const place = `${print(placeOf(rows, row))} ${print(HEIGHT - (value / top) * HEIGHT)}`;
      if (isAlone) dots += `M${place}h0`;
      else line += `${isDrawing ? 'L' : 'M'}${place}`;
    }
    isDrawing = value !== null;
  }
  return { line, dots };
};

/** Part of the width of a drawing. */
interface Slot {
  readonly x: number;
  readonly width: number;
}

/** Returns the part of the width that is nearest to each row: the whole of it is of some row. */
export const slotsOf = (rows: readonly ChartRow[], shape: 'line' | 'columns'): readonly Slot[] => {
  if (shape === 'columns') {
    const width = WIDTH / Math.max(1, rows.length);
    return rows.map((_, index) => ({ x: index * width, width }));
  }
  const places = rows.map((row) => placeOf(rows, row));
  return places.map((place, index) => {
    const start = ((places[index - 1] ?? -place) + place) / 2;
    const end = ((places[index + 1] ?? 2 * WIDTH - place) + place) / 2;
    return { x: start, width: end - start };
  });
};
