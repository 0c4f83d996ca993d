import type { z } from 'zod';
import type { KeyPath } from './config-problem.js';
import { ConfigFile } from './config.schema.js';
import { findNearest } from './find-nearest.js';
import type { ProblemList } from './problem-list.js';
import { hintAt, knownKeys } from './problem-list.js';
import { TomlFloat } from './toml-value.js';
import type { TomlData } from './toml-value.js';

const MAX_SHOWN = 60;
/** Keys that may hold a misplaced secret: an error never repeats their value. */
const SECRET_KEYS: ReadonlySet<string> = new Set([
  'token',
  'api_key_env',
  'base_url',
  'proxy',
  'system_prompt',
]);

const valueAt = (data: TomlData, path: KeyPath): TomlData | undefined =>
  path.reduce<TomlData | undefined>(
    (at, part) =>
      at !== null && typeof at === 'object' ? (at as Record<string | number, TomlData>)[part] : undefined,
    data,
  );

const describeText = (text: string): string =>
  text === ''
    ? 'an empty string'
    : `the string ${JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text)}`;

const describe = (value: TomlData): string => {
  if (Array.isArray(value)) return 'an array';
  if (value instanceof TomlFloat) return `the float ${value.text}`;
  if (value instanceof Date) return 'a date or time';
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return `the integer ${value}`;
  return typeof value === 'string' ? describeText(value) : 'a table';
};

const isSecret = (path: KeyPath): boolean =>
  path.some((part) => typeof part === 'string' && SECRET_KEYS.has(part));

const addUnknownKeys = (list: ProblemList, path: KeyPath, keys: readonly string[]): void => {
  const known = knownKeys(path);
  for (const key of keys) {
    const nearest = findNearest(key, known);
    list.add([...path, key], {
      message: 'unknown key',
      expected: `one of ${known.join(', ')}`,
      example: nearest === null ? null : (hintAt([...path, nearest])?.example ?? null),
      nearest,
      atKey: true,
    });
  }
};

const enumNearest = (path: KeyPath, value: TomlData): string | null => {
  const expected = hintAt(path)?.expected ?? '';
  return typeof value === 'string' && expected.startsWith('one of ')
    ? findNearest(value, expected.slice('one of '.length).split(', '))
    : null;
};

const addIssue = (list: ProblemList, data: TomlData, issue: z.core.$ZodIssue): void => {
  const path = issue.path as KeyPath;
  if (issue.code === 'unrecognized_keys') return addUnknownKeys(list, path, issue.keys);
  const value = valueAt(data, path);
  if (value === undefined) return list.add(path, { message: 'missing' });
  list.add(path, {
    message:
      isSecret(path) && value !== '' ? 'a value that is not valid (not shown)' : `found ${describe(value)}`,
    nearest: enumNearest(path, value),
  });
};

/** Checks a file against the schema. Returns null, with every problem in the list, if it fails. */
export const checkSchema = (list: ProblemList, data: TomlData): ConfigFile | null => {
  const result = ConfigFile.safeParse(data);
  if (result.success) return result.data;
  for (const issue of result.error.issues) addIssue(list, data, issue);
  return null;
};
