import type { z } from 'zod';
import { ConfigFile } from './config.schema.js';
import { hints } from './key-hints.js';
import { unwrap } from './problem-list.js';

/** A key of the file, as docs/contract.md shows it. */
export interface SettingRow {
  readonly key: string;
  /** Meaning of the value, without its bounds. */
  readonly description: string;
  /** Bounds of the value; empty if the description says them. */
  readonly values: string;
  readonly unit: string;
  /** Default as in the file; `optional` if an absent key has a meaning of its own. */
  readonly otherwise: string;
}

/** A table of the file with its keys. */
export interface SettingTable {
  /** Name in single brackets, or in double ones for a list. */
  readonly name: string;
  readonly rows: readonly SettingRow[];
}

type Node = z.core.$ZodType;
interface Definition {
  readonly type: string;
  readonly innerType?: Node;
  readonly defaultValue?: unknown;
  readonly shape?: Readonly<Record<string, Node>>;
  readonly element?: Node;
}
const definitionOf = (schema: Node): Definition => schema._zod.def as Definition;

const UNITS: readonly (readonly [RegExp, string])[] = [
  [/_s$/, 's'],
  [/_ms$/, 'ms'],
  [/_mb$/, 'MiB'],
  [/bytes/, 'bytes'],
  [/_days$/, 'days'],
  [/(?:^|_)usd$|_per_mtok$/, 'US dollars'],
  [/^(?:tokens|context_tokens|max_output_tokens|session|daily|monthly)$/, 'tokens'],
];

/** Returns the default as in the file. The outermost wrapper decides. */
const defaultOf = (schema: Node): string => {
  const { type, innerType, defaultValue } = definitionOf(schema);
  if (type === 'optional') return 'optional';
  if (type === 'default' || type === 'prefault')
    return defaultValue === null ? 'none' : JSON.stringify(defaultValue);
  return innerType === undefined ? 'required' : defaultOf(innerType);
};

const rowOf = (key: string, schema: Node): SettingRow => {
  const { expected = '' } = hints.get(unwrap(schema) as z.ZodType) ?? {};
  const colon = expected.search(/(?<!file): /);
  return {
    key,
    description: colon === -1 ? expected : expected.slice(0, colon),
    values: colon === -1 ? '' : expected.slice(colon + 2),
    unit: UNITS.find(([pattern]) => pattern.test(key))?.[1] ?? '',
    otherwise: defaultOf(schema),
  };
};

const tablesAt = (schema: Node, path: string, isList: boolean): readonly SettingTable[] => {
  const entries = Object.entries(definitionOf(unwrap(schema)).shape ?? {}).map(([key, child]) => {
    const { shape, element } = definitionOf(unwrap(child));
    const list = element !== undefined && definitionOf(unwrap(element)).shape ? element : undefined;
    return { key, child, below: shape ? child : list, isList: list !== undefined };
  });
  const rows = entries.flatMap(({ key, child, below }) => (below ? [] : [rowOf(key, child)]));
  const deeper = entries.flatMap(({ key, below, isList }) =>
    below ? tablesAt(below, path === '' ? key : `${path}.${key}`, isList) : [],
  );
  return rows.length === 0 ? deeper : [{ name: isList ? `[[${path}]]` : `[${path}]`, rows }, ...deeper];
};

/** Returns every table of the file with its keys, in the order of the schema. */
export const settingTables = (): readonly SettingTable[] => tablesAt(ConfigFile, '', false);
