import { createReadStream } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { createGunzip } from 'node:zlib';

/** Bounds of the lines of a compressed file. A few bytes of it may expand a thousandfold. */
export interface LineBounds {
  /** Lines of a page. */
  readonly pageRows: number;
  /** Characters of a page, which ends with the line that reaches them. */
  readonly pageChars: number;
  /** Characters of a line. */
  readonly lineChars: number;
  /** Lines of the file. */
  readonly lines: number;
  /** Bytes of the file when expanded. Default: the bounds of its lines. */
  readonly bytes?: number | undefined;
  /** Creates the error of a file that exceeds a bound. */
  readonly refuse: (reason: string) => Error;
}

/** Splits text into lines. Holds the line that has not ended, up to its bound. */
class LineSplitter {
  private parts: string[] = [];
  private chars = 0;
  private lines = 0;

  constructor(private readonly bounds: LineBounds) {}

  /** Yields the lines that end within a text. */
  *split(text: string): Generator<string, void, undefined> {
    let begin = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', begin)) {
      this.add(text.slice(begin, end));
      begin = end + 1;
      yield this.take();
    }
    this.add(text.slice(begin));
  }

  /** Yields the last line if no line feed ends it. */
  *end(): Generator<string, void, undefined> {
    if (this.chars > 0) yield this.take();
  }

  private add(part: string): void {
    const { lineChars, refuse } = this.bounds;
    this.chars += part.length;
    if (this.chars > lineChars) throw refuse(`has a line of over ${lineChars} characters`);
    if (part !== '') this.parts.push(part);
  }

  private take(): string {
    const { lines, refuse } = this.bounds;
    this.lines++;
    if (this.lines > lines) throw refuse(`has more than ${lines} lines`);
    const line = this.parts.length === 1 ? (this.parts[0] as string) : this.parts.join('');
    this.parts = [];
    this.chars = 0;
    return line;
  }
}

async function* expand({ file, bounds }: { readonly file: string; readonly bounds: LineBounds }) {
  const { bytes = Infinity, refuse } = bounds;
  const source = createReadStream(file);
  const gunzip = createGunzip();
  source.on('error', (error) => gunzip.destroy(error));
  const decoder = new StringDecoder('utf8');
  let expanded = 0;
  try {
    for await (const chunk of source.pipe(gunzip) as AsyncIterable<Buffer>) {
      expanded += chunk.length;
      if (expanded > bytes) throw refuse(`expands to more than ${bytes} bytes`);
      yield decoder.write(chunk);
    }
    yield decoder.end();
  } finally {
    source.destroy();
    gunzip.destroy();
  }
}

/**
 * Reads the lines of a gzip file in pages bounded in number and characters. Throws the error of
 * `refuse` as soon as the file exceeds a bound, before the rest of it is expanded.
 */
export async function* readGzipLines(
  file: string,
  bounds: LineBounds,
): AsyncGenerator<string[], void, undefined> {
  const splitter = new LineSplitter(bounds);
  let page: string[] = [];
  let chars = 0;
  const isFull = (line: string): boolean => {
    page.push(line);
    chars += line.length;
    return page.length >= bounds.pageRows || chars >= bounds.pageChars;
  };
  const takePage = (): string[] => {
    const full = page;
    page = [];
    chars = 0;
    return full;
  };
  for await (const text of expand({ file, bounds }))
    for (const line of splitter.split(text)) if (isFull(line)) yield takePage();
  for (const line of splitter.end()) if (isFull(line)) yield takePage();
  if (page.length > 0) yield page;
}
