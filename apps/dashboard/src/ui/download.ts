const save = (blob: Blob, name: string): void => {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
};

/** Saves a text as a file. */
export const download = (text: string, name: string, type = 'text/plain'): void =>
  save(new Blob([text], { type }), name);

/** Saves bytes as a file, of a type that no browser runs. */
export const downloadBytes = (bytes: Uint8Array<ArrayBuffer>, name: string): void =>
  save(new Blob([bytes], { type: 'application/octet-stream' }), name);

type Cell = string | number | null;

/** A cell that a spreadsheet would run as a formula gets an apostrophe in front. */
const printCell = (cell: Cell): string => {
  if (typeof cell === 'number') return String(cell);
  const text = (cell ?? '').replace(/^[=+\-@\t\r]/, "'$&");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** Prints rows as CSV of RFC 4180. */
export const printCsv = (columns: readonly string[], rows: readonly (readonly Cell[])[]): string =>
  [columns, ...rows].map((row) => `${row.map(printCell).join(',')}\r\n`).join('');
