type Renamed<K extends string> = K extends `${infer Name}_s`
  ? `${Name}_ms`
  : K extends 'usd'
    ? 'micro_usd'
    : K extends `${infer Name}_usd`
      ? `${Name}_micro_usd`
      : K extends `${infer Name}_per_mtok`
        ? `${Name}_micro_usd_per_mtok`
        : K;
type Words<K extends string> = K extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<Words<Rest>>}`
  : K;

/** Values of the file under the names that the code uses. */
export type CamelKeys<T> = T extends readonly (infer Item)[]
  ? readonly CamelKeys<Item>[]
  : T extends object
    ? { readonly [K in keyof T as Words<Renamed<K & string>>]: CamelKeys<T[K]> }
    : T;

/** The schema already gives money in micro-dollars, so that only its name changes. */
const renamed = (key: string): string =>
  key
    .replace(/_s$/, '_ms')
    .replace(/^usd$|_usd$/, (unit) => unit.replace('usd', 'micro_usd'))
    .replace(/_per_mtok$/, '_micro_usd_per_mtok');

const camel = (key: string): string =>
  renamed(key).replaceAll(/_([a-z0-9])/g, (_match, letter: string) => letter.toUpperCase());

const convert = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(convert);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([key, item]) => [
    camel(key),
    key.endsWith('_s') && typeof item === 'number' ? item * 1_000 : convert(item),
  ]);
  return Object.fromEntries(fields) as unknown;
};

/**
 * Maps the keys of the file to the names of the code, at every depth: `max_files` to `maxFiles`.
 * Seconds become milliseconds (`body_timeout_s`, `bodyTimeoutMs`), and names of money get their
 * unit (`daily_usd`, `dailyMicroUsd`).
 */
export const camelKeys = <T extends object>(value: T): CamelKeys<T> => convert(value) as CamelKeys<T>;
