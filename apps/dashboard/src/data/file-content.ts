/** Largest file that is read without a question, and largest image that is shown, in bytes. */
export const MAX_READ_BYTES = 1_024 * 1_024;
export const MAX_IMAGE_BYTES = 2 * 1_024 * 1_024;
/** Maximum number of rows of a table. */
export const MAX_TABLE_ROWS = 1_000;

/** Content of a file as the page shows it. */
export type FileContent =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'image'; readonly url: string; readonly media: string }
  | { readonly kind: 'bytes' };

const startsWith = (bytes: Uint8Array, ...signature: readonly number[]): boolean =>
  signature.every((byte, index) => bytes[index] === byte);
const hasText = (bytes: Uint8Array, start: number, text: string): boolean =>
  [...text].every((char, index) => bytes[start + index] === char.charCodeAt(0));

/** Returns the type of an image by its first bytes: a name proves nothing. SVG is a text. */
const mediaOf = (bytes: Uint8Array): string | null => {
  if (startsWith(bytes, 0x89, 0x50, 0x4e, 0x47)) return 'image/png';
  if (startsWith(bytes, 0xff, 0xd8, 0xff)) return 'image/jpeg';
  if (hasText(bytes, 0, 'GIF8')) return 'image/gif';
  return hasText(bytes, 0, 'RIFF') && hasText(bytes, 8, 'WEBP') ? 'image/webp' : null;
};

const CHUNK = 0x8000;
const toBase64 = (bytes: Uint8Array): string => {
  let text = '';
  for (let from = 0; from < bytes.length; from += CHUNK)
    text += String.fromCharCode(...bytes.subarray(from, from + CHUNK));
  return btoa(text);
};

/** Reads bytes as an image, as UTF-8 without a zero byte, or as bytes. */
export const readContent = (bytes: Uint8Array): FileContent => {
  const media = mediaOf(bytes);
  if (media !== null)
    return bytes.length > MAX_IMAGE_BYTES
      ? { kind: 'bytes' }
      : { kind: 'image', media, url: `data:${media};base64,${toBase64(bytes)}` };
  if (bytes.subarray(0, 8_000).includes(0)) return { kind: 'bytes' };
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return { kind: 'text', text };
  } catch {
    return { kind: 'bytes' };
  }
};

export type TextForm = 'markdown' | 'table' | 'code';

const FORMS: readonly (readonly [RegExp, TextForm])[] = [
  [/\.(md|markdown|chat)$/i, 'markdown'],
  [/\.(csv|tsv)$/i, 'table'],
];
/** Returns the form of a text by the name of its file. */
export const formOf = (path: string): TextForm => FORMS.find(([name]) => name.test(path))?.[1] ?? 'code';

/** Returns the ending of a text's lines. A text with both keeps each: they are characters then. */
export const lineEndOf = (text: string): '\n' | '\r\n' => {
  const lines = text.split('\n');
  return lines.length > 1 && lines.slice(0, -1).every((line) => line.endsWith('\r')) ? '\r\n' : '\n';
};

export interface CsvTable {
  readonly rows: readonly (readonly string[])[];
  /** True if rows are left out. */
  readonly isCut: boolean;
}

/** Of separators that are as frequent, the first one is taken. */
const SEPARATORS = ['\t', ',', ';'] as const;

/** Returns the separator that the first line has most of. */
const separatorOf = (text: string): string => {
  const [line = ''] = text.split('\n', 1);
  const countOf = (separator: string): number => line.split(separator).length;
  return SEPARATORS.toSorted((a, b) => countOf(b) - countOf(a))[0] ?? ',';
};

/** Reads cells character by character. */
class CsvReader {
  readonly rows: string[][] = [];
  private row: string[] = [];
  private cell = '';
  private isQuoted = false;

  constructor(
    private readonly text: string,
    private readonly separator: string,
  ) {}

  /** Reads up to a number of rows. Returns the index after the last one. */
  read(maxRows: number): number {
    let at = 0;
    for (; at < this.text.length && this.rows.length < maxRows; at++)
      at = this.isQuoted ? this.readQuoted(at) : this.readPlain(at);
    const hasRest = this.cell !== '' || this.row.length > 0;
    if (hasRest && this.rows.length < maxRows) this.endRow();
    return at;
  }

  private readQuoted(at: number): number {
    const char = this.text.charAt(at);
    if (char !== '"') this.cell += char;
    else if (this.text.charAt(at + 1) === '"') {
      this.cell += char;
      return at + 1;
    } else this.isQuoted = false;
    return at;
  }

  private readPlain(at: number): number {
    const char = this.text.charAt(at);
    if (char === '"' && this.cell === '') this.isQuoted = true;
    else if (char === this.separator) this.endCell();
    else if (char === '\n') this.endRow();
    else if (char !== '\r') this.cell += char;
    return at;
  }

  private endCell(): void {
    this.row.push(this.cell);
    this.cell = '';
  }

  private endRow(): void {
    this.endCell();
    this.rows.push(this.row);
    this.row = [];
  }
}

/** Reads the first rows of CSV (RFC 4180), also with semicolons or tabs. */
export const readCsv = (text: string, maxRows = MAX_TABLE_ROWS): CsvTable => {
  const reader = new CsvReader(text, separatorOf(text));
  const end = reader.read(maxRows);
  return { rows: reader.rows, isCut: end < text.length };
};
