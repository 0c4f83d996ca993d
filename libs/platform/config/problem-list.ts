import type { z } from 'zod';
import { keyText } from './config-problem.js';
import type { ConfigProblem, KeyPath, Place } from './config-problem.js';
import { ConfigFile } from './config.schema.js';
import { hints } from './key-hints.js';
import type { Hint } from './key-hints.js';
import { TomlFloat, pathId } from './toml-value.js';
import type { TomlData, TomlTree } from './toml-value.js';

type Node = z.core.$ZodType;

/** Returns a schema without the wrappers for optional and default. */
export const unwrap = (schema: Node): Node => {
  let at = schema as { _zod: { def: { type: string; innerType?: Node } } };
  while (at._zod.def.innerType !== undefined) at = at._zod.def.innerType as typeof at;
  return at as Node;
};

const step = (schema: Node, part: string | number): Node | null => {
  const { def } = unwrap(schema)._zod as { def: { shape?: Record<string, Node>; element?: Node } };
  const shape = def.shape ?? {};
  // `__proto__` and similar names are keys of a hostile file, not of the schema.
  const next = typeof part === 'number' ? def.element : Object.hasOwn(shape, part) ? shape[part] : undefined;
  return next === undefined ? null : unwrap(next);
};

const schemaAt = (path: KeyPath): Node | null =>
  path.reduce<Node | null>((schema, part) => (schema === null ? null : step(schema, part)), ConfigFile);

/** Returns the hint of a path, or null if the schema does not know it. */
export const hintAt = (path: KeyPath): Hint | null => {
  const schema = schemaAt(path);
  return schema === null ? null : (hints.get(schema as z.ZodType) ?? null);
};

/** Returns the keys that the table at a path may have. */
export const knownKeys = (path: KeyPath): readonly string[] => {
  const schema = schemaAt(path);
  if (schema === null) return [];
  const { def } = unwrap(schema)._zod as { def: { shape?: Record<string, Node> } };
  return Object.keys(def.shape ?? {});
};

const collectKeys = (path: KeyPath): readonly string[] =>
  knownKeys(path).flatMap((key) => {
    const below = [...path, key];
    const deeper = [...collectKeys(below), ...collectKeys([...below, 0])];
    return [below.filter((part) => typeof part === 'string').join('.'), ...deeper];
  });

/** Returns every key of the schema without list positions, such as `agents.fallback.model`. */
export const configKeys = (): readonly string[] => collectKeys([]);

export interface Entry {
  readonly table: Readonly<Record<string, TomlData>>;
  readonly path: KeyPath;
}

const isTable = (value: unknown): value is Readonly<Record<string, TomlData>> =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof Date) &&
  !(value instanceof TomlFloat);

/** Returns the tables of `[[key]]`. Cross checks also run on files that the schema refuses. */
export const entriesOf = (data: Readonly<Record<string, TomlData>>, key: string): readonly Entry[] => {
  const list = data[key];
  if (!Array.isArray(list)) return [];
  return list.flatMap((table, index) => (isTable(table) ? [{ table, path: [key, index] }] : []));
};

/** Returns the table of a key, or an empty one. */
export const tableOf = (
  from: Readonly<Record<string, TomlData>>,
  key: string,
): Readonly<Record<string, TomlData>> => {
  const table = from[key];
  return isTable(table) ? table : {};
};

export const textOf = (table: Readonly<Record<string, TomlData>>, key: string): string | null => {
  const value = table[key];
  return typeof value === 'string' ? value : null;
};

export const textsOf = (table: Readonly<Record<string, TomlData>>, key: string): readonly string[] => {
  const value = table[key];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
};

export interface ProblemDetails {
  readonly message: string;
  /** Both default to the hint of the key; null omits them. */
  readonly expected?: string | null;
  readonly example?: string | null;
  readonly nearest?: string | null;
  readonly related?: KeyPath;
  /** Points at the key instead of its value. */
  readonly atKey?: boolean;
}

/** Collects problems with their places. Only the first problem at a path is stored. */
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
