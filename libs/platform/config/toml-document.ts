import { ParseError, parseTOML } from 'toml-eslint-parser';
import type { KeyPath, Place } from './config-problem.js';
import { findLimitProblem } from './toml-limits.js';
import { pathId, readTree } from './toml-value.js';
import type { TomlTree, ValueProblem } from './toml-value.js';

export interface SyntaxProblem {
  readonly place: Place;
  readonly path: KeyPath;
  readonly message: string;
  readonly expected: string;
  readonly related: Place | null;
}

export type TomlDocument =
  | { readonly ok: true; readonly tree: TomlTree; readonly problems: readonly ValueProblem[] }
  | { readonly ok: false; readonly problem: SyntaxProblem };

const TOML_VERSION = '1.0.0';
const NO_VALUE = 'Unspecified values are invalid';
const DUPLICATE = 'Defining a key multiple times is invalid';

const tryTree = (text: string): TomlTree | null => {
  try {
    return readTree(parseTOML(text, { tomlVersion: TOML_VERSION }));
  } catch {
    // Only parses fragments around an error that is reported in any case.
    return null;
  }
};

/** Returns the path that a line defines: its table header, or its key in the table before it. */
const definedPath = (lines: readonly string[], index: number): KeyPath | null => {
  const line = (lines[index] ?? '').trim();
  const header = (text: string): KeyPath | null => {
    const tree = tryTree(text);
    return tree === null ? null : deepestPath(tree);
  };
  if (line.startsWith('[')) return header(line);
  const own = header(`${line.split('=')[0] ?? ''}= 0`);
  const table = lines.slice(0, index).findLast((before) => before.trimStart().startsWith('['));
  const base = table === undefined ? [] : header(table.trim());
  return own === null || base === null ? null : [...base, ...own];
};

const deepestPath = (tree: TomlTree): KeyPath =>
  [...tree.places.keys.keys()]
    .map((id) => JSON.parse(id) as (string | number)[])
    .reduce((deepest, path) => (path.length > deepest.length ? path : deepest), [] as (string | number)[]);

/** Resolves dotted names at the end of a document. A list of tables stands for its newest table. */
const resolvePath = (tree: TomlTree, names: readonly string[]): KeyPath => {
  const path: (string | number)[] = [];
  let at: unknown = tree.data;
  for (const name of names) {
    if (Array.isArray(at)) {
      path.push(at.length - 1);
      at = at.at(-1);
    }
    path.push(name);
    at = typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined;
  }
  return path;
};

/** Adds the first definition to a duplicate: the parser names only the second one. */
const duplicateProblem = (text: string, place: Place): SyntaxProblem => {
  const lines = text.split('\n');
  const path = definedPath(lines, place.line - 1) ?? [];
  const names = path.filter((part) => typeof part === 'string');
  const before = tryTree(lines.slice(0, place.line - 1).join('\n'));
  const resolved = before === null ? names : resolvePath(before, names);
  const related = before?.places.keys.get(pathId(resolved)) ?? null;
  const first = related === null ? '' : `; the first definition is in line ${related.line}`;
  return {
    place,
    path: resolved,
    message: `defined twice${first}`,
    expected: 'each table and each key once; only tables in double brackets, like [[agents]], repeat',
    related,
  };
};

/**
 * Returns the place of an error. For a missing value the parser names the next token, lines later.
 */
const placeOfError = (text: string, error: ParseError): Place => {
  const place = { line: error.lineNumber, column: error.column + 1 };
  if (!error.message.startsWith(NO_VALUE)) return place;
  const before = text.slice(0, error.index).trimEnd();
  const start = before.lastIndexOf('\n') + 1;
  return { line: before.split('\n').length, column: before.length - start + 1 };
};

const syntaxProblem = (text: string, error: unknown): SyntaxProblem => {
  if (error instanceof ParseError) {
    const place = placeOfError(text, error);
    if (error.message.startsWith(DUPLICATE)) return duplicateProblem(text, place);
    return { place, path: [], message: `not TOML: ${error.message}`, expected: 'TOML 1.0', related: null };
  }
  const reason = error instanceof Error ? error.message : String(error);
  return {
    place: { line: 1, column: 1 },
    path: [],
    message: `could not be read as TOML: ${reason}`,
    expected: 'TOML 1.0',
    related: null,
  };
};

/** Parses TOML 1.0 with places. Returns a tree or a problem for any text, and never throws. */
export const parseToml = (text: string): TomlDocument => {
  const limit = findLimitProblem(text);
  if (limit !== null) {
    const { line, column, message, expected } = limit;
    return { ok: false, problem: { place: { line, column }, path: [], message, expected, related: null } };
  }
  try {
    const tree = readTree(parseTOML(text, { tomlVersion: TOML_VERSION }));
    return { ok: true, tree, problems: tree.problems };
  } catch (error) {
    return { ok: false, problem: syntaxProblem(text, error) };
  }
};
