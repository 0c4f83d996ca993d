/** Maximum number of characters that are read of one document. A context has room for far less. */
const MAX_CHARS = 4_000_000;

/** Ends the reading of a document whose text is long enough. */
class OutputFull extends Error {}

const CUT = '\n[the rest of this document is not read]';

/** Joins lines, without blanks at their ends and without more than one empty line in a row. */
const tidy = (text: string): string => {
  const lines: string[] = [];
  for (const line of text.split('\n')) {
    const trimmed = line.trimEnd();
    if (trimmed !== '' || (lines.at(-1) ?? '') !== '') lines.push(trimmed);
  }
  return lines.join('\n').trim();
};

/** Collects the text of a document, up to a bound. */
export class TextOutput {
  private readonly parts: string[] = [];
  private length = 0;

  private constructor() {}

  /** Returns the text that `write` adds. */
  static of(write: (output: TextOutput) => void): string {
    const output = new TextOutput();
    try {
      write(output);
    } catch (error) {
      if (!(error instanceof OutputFull)) throw error;
      return tidy(output.parts.join('')) + CUT;
    }
    return tidy(output.parts.join(''));
  }

  readonly add = (text: string): void => {
    this.parts.push(text.slice(0, MAX_CHARS - this.length));
    this.length += text.length;
    if (this.length >= MAX_CHARS) throw new OutputFull();
  };
}
