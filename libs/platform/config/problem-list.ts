import type { ConfigProblem, KeyPath, Place } from './config-problem.js';
import { keyText } from './config-problem.js';
import { hintAt } from './schema-hints.js';
import { pathId } from './toml-value.js';
import type { TomlTree } from './toml-value.js';

export interface ProblemDetails {
  readonly message: string;
  readonly expected?: string | null;
  readonly example?: string | null;
  readonly nearest?: string | null;
  readonly related?: KeyPath | null;
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

export const createProblemList = (file: string | null, tree: TomlTree): ProblemList => {
  const problems = new Map<string, ConfigProblem>();
  return {
    add: (path, { message, expected, example, nearest, related, atKey }) => {
      if (problems.has(pathId(path))) return;
      const place = placeAt(tree, path, atKey ?? false);
      const hint = hintAt(path);
      problems.set(pathId(path), {
        file,
        line: place?.line ?? null,
        column: place?.column ?? null,
        key: keyText(path),
        message,
        expected: expected === undefined ? (hint?.expected ?? null) : expected,
        example: example === undefined ? (hint?.example ?? null) : example,
        nearest: nearest ?? null,
        related: related === undefined || related === null ? null : placeAt(tree, related, false),
      });
    },
    all: () => [...problems.values()].sort(byPlace),
  };
};
