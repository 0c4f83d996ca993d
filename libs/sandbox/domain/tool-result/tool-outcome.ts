import { assertNever, toStorable } from '@antiphon/kernel';

/** How one run of an export in a cell ended, before anyone has looked at what it put out. */
export type RunEnd =
  /** `status` 0 is success (Extism's convention); `error` is what the plug-in set as its error. */
  | {
      readonly end: 'returned';
      readonly status: number;
      readonly output: Uint8Array;
      readonly error: string | null;
    }
  | { readonly end: 'trapped'; readonly message: string }
  | { readonly end: 'memory'; readonly message: string }
  | { readonly end: 'output'; readonly message: string }
  /** It asked its host for what it may not have. */
  | { readonly end: 'denied'; readonly message: string }
  | { readonly end: 'timeout'; readonly timeoutMs: number }
  /** The caller took the call back. */
  | { readonly end: 'cancelled' }
  /** The cell's process ended by itself. */
  | { readonly end: 'died'; readonly message: string };

export const TOOL_FAILURES = [
  'TOOL.UNKNOWN',
  'TOOL.TIMEOUT',
  'TOOL.TRAP',
  'TOOL.MEMORY',
  'TOOL.OUTPUT',
  'TOOL.DENIED',
  'TOOL.CHANGED',
  'TOOL.UNAVAILABLE',
  'TOOL.CANCELLED',
] as const;
export type ToolFailure = (typeof TOOL_FAILURES)[number];

export type ToolOutcome =
  | { readonly outcome: 'completed'; readonly content: string; readonly isError: boolean }
  | { readonly outcome: 'failed'; readonly code: ToolFailure; readonly message: string };

const SAMPLE_BYTES = 256;

export const failed = (code: ToolFailure, message: string): ToolOutcome => ({
  outcome: 'failed',
  code,
  message,
});

const completed = (content: string, isError: boolean, maxBytes: number): ToolOutcome => {
  const storable = toStorable(content);
  // The answer travels as JSON, where a control character takes six bytes: the limit holds for what is sent.
  const bytes = new TextEncoder().encode(JSON.stringify(storable)).length;
  return bytes > maxBytes
    ? failed(
        'TOOL.OUTPUT',
        `output_limit: the tool's output takes ${bytes} bytes, at most ${maxBytes} are kept`,
      )
    : { outcome: 'completed', content: storable, isError };
};

const sample = (output: Uint8Array): string => btoa(String.fromCharCode(...output.subarray(0, SAMPLE_BYTES)));

const decode = (output: Uint8Array): string | null => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(output);
  } catch {
    return null;
  }
};

interface ResultObject {
  readonly content: string;
  readonly is_error?: unknown;
}

const asResultObject = (text: string): ResultObject | null => {
  if (!text.trimStart().startsWith('{')) return null;
  try {
    const value = JSON.parse(text) as Partial<ResultObject> | null;
    return typeof value?.content === 'string' ? (value as ResultObject) : null;
  } catch {
    return null; // text that only looks like JSON is content as it stands
  }
};

/**
 * A plug-in answers `{"content": "…", "is_error": false}`, or any other text, which is then the content.
 * Nothing else of its object is looked at: ids, costs and sessions are the host's to say.
 */
const readOutput = (output: Uint8Array, maxBytes: number): ToolOutcome => {
  const text = decode(output);
  if (text === null)
    return failed(
      'TOOL.OUTPUT',
      `invalid_output: ${output.length} bytes that are not UTF-8, base64 ${sample(output)}`,
    );
  const result = asResultObject(text);
  return result === null
    ? completed(text, false, maxBytes)
    : completed(result.content, result.is_error === true, maxBytes);
};

/** Turns the end of a run into what the model is told; `maxBytes` bounds the content as JSON. */
export const outcomeOf = (run: RunEnd, maxBytes: number): ToolOutcome => {
  switch (run.end) {
    case 'returned':
      if (run.error !== null) return completed(run.error, true, maxBytes);
      if (run.status !== 0 && run.output.length === 0)
        return completed(`the tool answered with status ${run.status}`, true, maxBytes);
      return asError(readOutput(run.output, maxBytes), run.status !== 0);
    case 'trapped':
      return failed('TOOL.TRAP', `the tool trapped: ${run.message}`);
    case 'memory':
      return failed('TOOL.MEMORY', `memory_limit: ${run.message}`);
    case 'output':
      return failed('TOOL.OUTPUT', `output_limit: ${run.message}`);
    case 'denied':
      return failed('TOOL.DENIED', run.message);
    case 'timeout':
      return failed('TOOL.TIMEOUT', `timeout: the tool did not answer within ${run.timeoutMs} ms`);
    case 'cancelled':
      return failed('TOOL.CANCELLED', 'the call was cancelled');
    case 'died':
      return failed('TOOL.TRAP', `the tool's process ended: ${run.message}`);
    default:
      return assertNever(run);
  }
};

const asError = (outcome: ToolOutcome, isError: boolean): ToolOutcome =>
  isError && outcome.outcome === 'completed' ? { ...outcome, isError: true } : outcome;
