import type { KeyPath } from './config-problem.js';
import { TomlFloat } from './toml-value.js';
import type { TomlData } from './toml-value.js';

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

/** The tables of `[[key]]` that are tables: cross checks run on files that the grammar refuses too. */
export const entriesOf = (data: Readonly<Record<string, TomlData>>, key: string): readonly Entry[] => {
  const list = data[key];
  if (!Array.isArray(list)) return [];
  return list.flatMap((table, index) => (isTable(table) ? [{ table, path: [key, index] }] : []));
};

/** The table under a key, if it is one. */
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
