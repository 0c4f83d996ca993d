import type { ConfigProblem, KeyPath, Place } from './config-problem.js';
import { keyText } from './config-problem.js';
import { hintAt } from './schema-hints.js';
import { pathId } from './toml-value.js';
import type { TomlTree } from './toml-value.js';

export interface ProblemDetails {
  readonly message: string;
  /** Both default to what the grammar says of the key; null leaves it out. */
  readonly expected?: string | null;
  readonly example?: string | null;
  readonly nearest?: string | null;
  readonly related?: KeyPath;
  /** Point at the key instead of its value. */
  readonly atKey?: boolean;
}

/** Collects problems with their places; the first one at a path stands, what follows from it is left out. */
export interface ProblemList {
  add(path: KeyPath, details: ProblemDetails): void;
  readonly all: () => readonly ConfigProblem[];
}

const placeAt = ({ places }: TomlTree, path: KeyPath, atKey: boolean): Place | null => {
  for (let length = path.length; length > 0; length--) {
    const id = pathId(path.slice(0, length));
    const place = atKey
      ? (places.keys.get(id) ?? places.values.get(id))
      : (places.values.get(id) ?? places.keys.get(id));
    if (place !== undefined) return place;
  }
  return null;
};

const byPlace = (a: ConfigProblem, b: ConfigProblem): number =>
  (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);

const toProblem = (
  file: string | null,
  tree: TomlTree,
  path: KeyPath,
  details: ProblemDetails,
): ConfigProblem => {
  const { line = null, column = null } = placeAt(tree, path, details.atKey ?? false) ?? {};
  const { expected = null, example = null } = { ...hintAt(path), ...details };
  const { message, nearest = null, related } = details;
  const other = related === undefined ? null : placeAt(tree, related, false);
  return { file, line, column, key: keyText(path), message, expected, example, nearest, related: other };
};

export const createProblemList = (file: string | null, tree: TomlTree): ProblemList => {
  const problems = new Map<string, ConfigProblem>();
  return {
    add: (path, details) => {
      const id = pathId(path);
      if (!problems.has(id)) problems.set(id, toProblem(file, tree, path, details));
    },
    all: () => [...problems.values()].sort(byPlace),
  };
};
