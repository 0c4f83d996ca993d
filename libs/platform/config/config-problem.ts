import { invalid } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';

/** A place in the file; `line` and `column` count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** One thing that is wrong with a configuration. Never carries the value of a secret or of an unknown key. */
export interface ConfigProblem {
  /** Absolute path, null for the built-in defaults. */
  readonly file: string | null;
  readonly line: number | null;
  readonly column: number | null;
  /** Dotted key, `agents[1].provider`; empty for the file as a whole. */
  readonly key: string;
  readonly message: string;
  readonly expected: string | null;
  readonly example: string | null;
  /** The nearest known key or name, when there is a near one. */
  readonly nearest: string | null;
  /** The other place that this one contradicts, such as the first definition of a key. */
  readonly related: Place | null;
}

export type KeyPath = readonly (string | number)[];

const BARE_KEY = /^[A-Za-z0-9_-]+$/;

/** `['agents', 1, 'a b']` → `agents[1]."a b"`. */
export const keyText = (path: KeyPath): string =>
  path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`;
      const name = BARE_KEY.test(part) ? part : JSON.stringify(part);
      return index === 0 ? name : `.${name}`;
    })
    .join('');

const CODES = {
  invalid: 'CONFIG.INVALID',
  missing: 'CONFIG.NOT_FOUND',
  unreadable: 'CONFIG.UNREADABLE',
} as const;
export type ConfigErrorReason = keyof typeof CODES;

/** The one error of this package: all problems of a file at once, in `data.problems`. */
export const configError = (reason: ConfigErrorReason, problems: readonly ConfigProblem[]): AppError => {
  const rest = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  const first = problems[0];
  const where = first === undefined || first.line === null ? '' : ` in line ${first.line}`;
  return invalid(CODES[reason], `the configuration is not valid${where}: ${first?.message ?? ''}${rest}`, {
    data: { problems },
  });
};
