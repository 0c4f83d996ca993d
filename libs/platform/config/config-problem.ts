import { invalid, isAppError } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';

/** Place in the file. `line` and `column` count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Problem of a configuration. It never contains the value of a secret or of an unknown key. */
export interface ConfigProblem {
  /** Absolute path, or null for the built-in defaults. */
  readonly file: string | null;
  readonly line: number | null;
  readonly column: number | null;
  /** Dotted key such as `agents[1].provider`; empty for the whole file. */
  readonly key: string;
  readonly message: string;
  readonly expected: string | null;
  readonly example: string | null;
  /** The nearest known key or name, if one is similar. */
  readonly nearest: string | null;
  /** Another place that this one contradicts, such as the first definition of a key. */
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

/** Returns the error of this package, with all problems of a file in `data.problems`. */
export const configError = (reason: ConfigErrorReason, problems: readonly ConfigProblem[]): AppError => {
  const rest = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  const first = problems[0];
  const where = first === undefined || first.line === null ? '' : ` in line ${first.line}`;
  return invalid(CODES[reason], `the configuration is not valid${where}: ${first?.message ?? ''}${rest}`, {
    data: { problems },
  });
};

/** Escapes terminal sequences and other control characters of a hostile file. */
const printable = (text: string): string =>
  text.replaceAll(/[^\P{C}\n]/gu, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);

const location = ({ file, line, column }: ConfigProblem): string =>
  [file ?? 'built-in defaults', line, column].filter((part) => part !== null).join(':');

const renderProblem = (problem: ConfigProblem): string => {
  const { key, message, nearest, expected, example, related } = problem;
  const lines = [`${location(problem)}${key === '' ? '' : `  ${key}`}`, `  ${message}`];
  if (nearest !== null) lines.push(`  did you mean ${nearest}?`);
  if (related !== null) lines.push(`  the other one: line ${related.line}, column ${related.column}`);
  if (expected !== null) lines.push(`  expected ${expected}`);
  if (example !== null) lines.push(`  for example: ${example.replaceAll('\n', '\n               ')}`);
  return lines.map(printable).join('\n');
};

/** Returns the problems of a configuration error, or none for any other error. */
export const configProblems = (error: unknown): readonly ConfigProblem[] =>
  isAppError(error) && error.code.startsWith('CONFIG.') && Array.isArray(error.data['problems'])
    ? (error.data['problems'] as ConfigProblem[])
    : [];

/** Renders every problem with its place, the expected value and an example. */
export const renderConfigErrors = (error: unknown): string => {
  const problems = configProblems(error);
  const title =
    problems.length === 1
      ? 'The configuration has a problem:'
      : `The configuration has ${problems.length} problems:`;
  return [title, ...problems.map(renderProblem)].join('\n\n');
};

/**
 * Returns the code of a file system error, such as `EACCES`. It does not use `instanceof`, because
 * Node's own errors may come from another realm.
 */
export const errorCode = (error: unknown): string => {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'unknown error';
};

export const isMissing = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(errorCode(error));
