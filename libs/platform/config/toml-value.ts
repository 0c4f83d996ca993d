import type { AST } from 'toml-eslint-parser';
import type { KeyPath, Place } from './config-problem.js';

/** TOML float with its text, which converts to money exactly and is not accepted as an integer. */
export class TomlFloat {
  constructor(readonly text: string) {}
}

/** Parsed data. Its objects have no prototype that a key could reach. */
export type TomlData =
  string | number | boolean | Date | TomlFloat | TomlData[] | { [key: string]: TomlData };

export interface ValueProblem {
  readonly path: KeyPath;
  readonly place: Place;
  readonly message: string;
  readonly expected: string;
  readonly example: string | null;
}

/** Places of keys and values, by `JSON.stringify(path)`. */
export interface TomlPlaces {
  readonly keys: Map<string, Place>;
  readonly values: Map<string, Place>;
}

export interface TomlTree {
  readonly data: { [key: string]: TomlData };
  readonly places: TomlPlaces;
  readonly problems: ValueProblem[];
}

export const pathId = (path: KeyPath): string => JSON.stringify(path);
export const placeOf = (node: { loc: AST.HasLocs['loc'] }): Place => ({
  line: node.loc.start.line,
  column: node.loc.start.column + 1,
});

const emptyTable = (): { [key: string]: TomlData } => Object.create(null) as { [key: string]: TomlData };

const nameOf = (key: AST.TOMLBare | AST.TOMLQuoted): string =>
  key.type === 'TOMLBare' ? key.name : key.value;

const FORBIDDEN = '__proto__';
const MAX_INT64 = 2n ** 63n - 1n;

const scalar = (tree: TomlTree, node: AST.TOMLValue, path: KeyPath): TomlData => {
  if (node.kind === 'float') return new TomlFloat(node.number);
  if (node.kind !== 'integer') return node.value;
  if (node.bigint > MAX_INT64 || node.bigint < -MAX_INT64 - 1n || !Number.isSafeInteger(Number(node.bigint)))
    tree.problems.push({
      path,
      place: placeOf(node),
      message: `the integer ${node.number} is out of range`,
      expected: `an integer of at most ${Number.MAX_SAFE_INTEGER}`,
      example: null,
    });
  return Number(node.bigint);
};

const content = (tree: TomlTree, node: AST.TOMLContentNode, path: KeyPath): TomlData => {
  tree.places.values.set(pathId(path), placeOf(node));
  if (node.type === 'TOMLValue') return scalar(tree, node, path);
  if (node.type === 'TOMLArray')
    return node.elements.map((item, index) => content(tree, item, [...path, index]));
  const table = emptyTable();
  for (const pair of node.body) assign(tree, table, pair, path);
  return table;
};

/**
 * Walks the tables of a key's leading parts and creates missing ones. Returns null if one is
 * forbidden.
 */
const descend = (
  tree: TomlTree,
  from: { [key: string]: TomlData },
  keys: readonly (AST.TOMLBare | AST.TOMLQuoted)[],
  base: KeyPath,
): { table: { [key: string]: TomlData }; path: KeyPath } | null => {
  let table = from;
  let path = base;
  for (const key of keys) {
    const name = nameOf(key);
    path = [...path, name];
    if (name === FORBIDDEN) return reportForbidden(tree, key, path);
    if (!tree.places.keys.has(pathId(path))) tree.places.keys.set(pathId(path), placeOf(key));
    const next = table[name];
    if (Array.isArray(next)) {
      path = [...path, next.length - 1];
      table = next.at(-1) as { [key: string]: TomlData };
    } else if (next === undefined) table = table[name] = emptyTable();
    else table = next as { [key: string]: TomlData };
  }
  return { table, path };
};

const reportForbidden = (tree: TomlTree, key: AST.TOMLNode, path: KeyPath): null => {
  tree.problems.push({
    path,
    place: placeOf(key),
    message: 'this key is forbidden: it could change the prototype of every object',
    expected: 'another key',
    example: null,
  });
  return null;
};

const assign = (
  tree: TomlTree,
  table: { [key: string]: TomlData },
  pair: AST.TOMLKeyValue,
  base: KeyPath,
): void => {
  const keys = pair.key.keys;
  const last = keys.at(-1);
  const target = descend(tree, table, keys.slice(0, -1), base);
  if (target === null || last === undefined) return;
  const path = [...target.path, nameOf(last)];
  if (nameOf(last) === FORBIDDEN) return void reportForbidden(tree, last, path);
  tree.places.keys.set(pathId(path), placeOf(last));
  target.table[nameOf(last)] = content(tree, pair.value, path);
};

const openTable = (
  tree: TomlTree,
  node: AST.TOMLTable,
): { table: { [key: string]: TomlData }; path: KeyPath } | null => {
  if (node.kind === 'standard') {
    const opened = descend(tree, tree.data, node.key.keys, []);
    if (opened !== null) tree.places.values.set(pathId(opened.path), placeOf(node));
    return opened;
  }
  const last = node.key.keys.at(-1);
  const target = descend(tree, tree.data, node.key.keys.slice(0, -1), []);
  if (target === null || last === undefined) return null;
  const listPath = [...target.path, nameOf(last)];
  if (nameOf(last) === FORBIDDEN) return reportForbidden(tree, last, listPath);
  const list = (target.table[nameOf(last)] ??= []) as TomlData[];
  const table = emptyTable();
  const path = [...listPath, list.push(table) - 1];
  tree.places.keys.set(pathId(listPath), tree.places.keys.get(pathId(listPath)) ?? placeOf(last));
  tree.places.values.set(pathId(path), placeOf(node));
  return { table, path };
};

const readNode = (tree: TomlTree, node: AST.TOMLKeyValue | AST.TOMLTable): void => {
  if (node.type === 'TOMLKeyValue') return assign(tree, tree.data, node, []);
  const opened = openTable(tree, node);
  if (opened !== null) for (const pair of node.body) assign(tree, opened.table, pair, opened.path);
};

/** Returns data and places of a parsed program. Its depth was bounded, so recursion is safe. */
export const readTree = (program: AST.TOMLProgram): TomlTree => {
  const tree: TomlTree = { data: emptyTable(), places: { keys: new Map(), values: new Map() }, problems: [] };
  for (const node of program.body[0].body) readNode(tree, node);
  return tree;
};
