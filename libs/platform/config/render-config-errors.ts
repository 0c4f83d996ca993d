import { isAppError } from '@antiphon/kernel';
import type { ConfigProblem } from './config-problem.js';

/** Terminal escapes and other control characters of a hostile file are shown, not obeyed. */
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

/** The problems that a configuration error carries; empty for any other error. */
export const configProblems = (error: unknown): readonly ConfigProblem[] =>
  isAppError(error) && error.code.startsWith('CONFIG.') && Array.isArray(error.data['problems'])
    ? (error.data['problems'] as ConfigProblem[])
    : [];

/** Every problem with its place, what was expected and an example: what a person sees when a start stops. */
export const renderConfigErrors = (error: unknown): string => {
  const problems = configProblems(error);
  const title =
    problems.length === 1
      ? 'The configuration has a problem:'
      : `The configuration has ${problems.length} problems:`;
  return [title, ...problems.map(renderProblem)].join('\n\n');
};
