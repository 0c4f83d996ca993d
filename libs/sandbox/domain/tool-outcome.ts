import { textCause, textOf } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import { assertNever, findJsonExcess, toStorable } from '@antiphon/kernel';

/** End of one run of an export in a cell, with its output still unparsed. */
export type RunEnd =
  /** `status` 0 is success (Extism's convention); `error` is the error that the plug-in set. */
  | {
      readonly end: 'returned';
      readonly status: number;
      readonly output: Uint8Array;
      readonly error: string | null;
    }
  | { readonly end: 'trapped'; readonly message: string }
  | { readonly end: 'memory'; readonly message: string }
  | { readonly end: 'output'; readonly message: string }
  /** The plug-in requested something that it was not granted. */
  | { readonly end: 'denied'; readonly message: string }
  | { readonly end: 'timeout'; readonly timeoutMs: number }
  /** The caller cancelled the call. */
  | { readonly end: 'cancelled' }
  /** The cell's process exited. */
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
  'TOOL.SERVER_FAILED',
  'TOOL.CANCELLED',
  'TOOL.NO_WORKER',
  'TOOL.WORKER_LOST',
] as const;
export type ToolFailure = (typeof TOOL_FAILURES)[number];

export type ToolOutcome =
  | { readonly outcome: 'completed'; readonly content: string; readonly isError: boolean }
  | {
      readonly outcome: 'failed';
      readonly code: ToolFailure;
      /** Text of the cause, for processes of a version that knew no causes. */
      readonly message: string;
      readonly cause: Cause;
    };

const SAMPLE_BYTES = 256;

export const toolFailed = (code: ToolFailure, cause: Cause): ToolOutcome => ({
  ...{ outcome: 'failed', code, message: textOf(cause), cause },
});

/** Returns the outcome of a call with a result; `maxBytes` bounds the content as JSON. */
export const completedOutcome = (content: string, isError: boolean, maxBytes: number): ToolOutcome => {
  const storable = toStorable(content);
  const bytes = new TextEncoder().encode(storable).length;
  return bytes > maxBytes
    ? toolFailed('TOOL.OUTPUT', { kind: 'tool_output_too_large', bytes, max: maxBytes })
    : { outcome: 'completed', content: storable, isError };
};

const encodeSample = (output: Uint8Array): string =>
  btoa(String.fromCharCode(...output.subarray(0, SAMPLE_BYTES)));

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
  if (!text.trimStart().startsWith('{') || findJsonExcess(text) !== null) return null;
  try {
    const value = JSON.parse(text) as Partial<ResultObject> | null;
    return typeof value?.content === 'string' ? (value as ResultObject) : null;
  } catch {
    return null; // invalid JSON is content as plain text
  }
};

/**
 * Reads a plug-in's output: `{"content": "…", "is_error": false}`, or any other text, which is then
 * the content. Ignores other keys of the object, because ids, costs and sessions are the host's.
 */
const readOutput = (output: Uint8Array, maxBytes: number): ToolOutcome => {
  const text = decode(output);
  if (text === null)
    return toolFailed('TOOL.OUTPUT', {
      ...{ kind: 'tool_output_not_text', bytes: output.length, sample: encodeSample(output) },
    });
  const result = asResultObject(text);
  return result === null
    ? completedOutcome(text, false, maxBytes)
    : completedOutcome(result.content, result.is_error === true, maxBytes);
};

/**
 * Converts the end of a run to the outcome for the model; `maxBytes` bounds the content in UTF-8.
 */
export const toToolOutcome = (run: RunEnd, maxBytes: number): ToolOutcome => {
  switch (run.end) {
    case 'returned':
      if (run.error !== null) return completedOutcome(run.error, true, maxBytes);
      if (run.status !== 0 && run.output.length === 0)
        return completedOutcome(`the tool answered with status ${run.status}`, true, maxBytes);
      return markError(readOutput(run.output, maxBytes), run.status !== 0);
    case 'trapped':
      return toolFailed('TOOL.TRAP', { kind: 'tool_trapped', detail: run.message });
    case 'memory':
      return toolFailed('TOOL.MEMORY', { kind: 'tool_memory_limit', detail: run.message });
    case 'output':
      return toolFailed('TOOL.OUTPUT', { kind: 'tool_output_limit', detail: run.message });
    case 'denied':
      return toolFailed('TOOL.DENIED', textCause(run.message));
    case 'timeout':
      return toolFailed('TOOL.TIMEOUT', { kind: 'tool_timeout', timeoutMs: run.timeoutMs });
    case 'cancelled':
      return toolFailed('TOOL.CANCELLED', { kind: 'tool_call_cancelled' });
    case 'died':
      return toolFailed('TOOL.TRAP', { kind: 'tool_process_ended', detail: run.message });
    default:
      return assertNever(run);
  }
};

/** Marks a completed outcome as an error when `isError` is set. */
const markError = (outcome: ToolOutcome, isError: boolean): ToolOutcome =>
  isError && outcome.outcome === 'completed' ? { ...outcome, isError: true } : outcome;
