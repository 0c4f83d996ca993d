import { isAppError } from '@antiphon/kernel';
import { defineCounter } from './metrics.js';
import { errorTypeOf } from './span.js';

/** Where an error came out. */
export type ErrorPlace = 'frame' | 'http' | 'request' | 'message' | 'provider' | 'turn';

const errors = defineCounter('antiphon_errors', 'Errors by where they came out, their kind and code');

/** Codes are ours, and few; what is none of them is counted by its class. */
export const countError = (at: ErrorPlace, error: unknown): void =>
  errors.add(1, { at, kind: isAppError(error) ? error.kind : 'bug', code: errorTypeOf(error) });

/** The same for what failed without an error of ours: a provider, a turn. */
export const countFailure = (at: ErrorPlace, kind: string, code: string): void =>
  errors.add(1, { at, kind, code });
