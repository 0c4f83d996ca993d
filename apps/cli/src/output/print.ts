import { configProblems, renderConfigErrors } from '@antiphon/config';
import { isAppError } from '@antiphon/kernel';

/** What a command says: one JSON document (or lines) with `--json`, else text for a person. */
export interface Output {
  readonly json: boolean;
  /** With `--json` the document, else the text. */
  result(document: unknown, text: string): void;
  /** A line of a stream of lines, or a piece of text without a line end. */
  line(document: unknown, text: string): void;
  piece(text: string): void;
  failure(error: unknown): void;
}

const describe = (error: unknown): { code: string; message: string; data: unknown } => ({
  code: isAppError(error) ? error.code : 'INTERNAL.UNEXPECTED',
  message: error instanceof Error ? error.message : String(error),
  data: isAppError(error) ? error.data : {},
});

export const createOutput = (json: boolean): Output => ({
  json,
  result: (document, text) => void process.stdout.write(`${json ? JSON.stringify(document) : text}\n`),
  line: (document, text) => void process.stdout.write(`${json ? JSON.stringify(document) : text}\n`),
  piece: (text) => void (json || process.stdout.write(text)),
  failure: (error) => {
    const text = configProblems(error).length > 0 ? renderConfigErrors(error) : describe(error).message;
    if (json) process.stdout.write(`${JSON.stringify({ error: describe(error) })}\n`);
    else process.stderr.write(`antiphon: ${text}\n`);
  },
});
