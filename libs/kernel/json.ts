export type JsonPrimitive = string | number | boolean | null;
export type JsonValue = JsonPrimitive | readonly JsonValue[] | { readonly [key: string]: JsonValue };
export type JsonObject = { readonly [key: string]: JsonValue };

/** Maximum nesting of JSON that an edge accepts (docs/contract.md §3). */
export const MAX_JSON_DEPTH = 64;
/**
 * Maximum number of values in JSON that an edge accepts. A megabyte of small arrays is parsed,
 * checked and copied for longer than its bytes suggest, on the loop that all tenants share.
 */
export const MAX_JSON_VALUES = 100_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const COMMA = 0x2c;

export interface JsonBounds {
  readonly depth?: number;
  /** Commas and brackets count, so that an array in an array may count twice. */
  readonly values?: number;
}

/** Returns the place of the quote that ends a string, or the end of the text. */
const endOfString = (text: string, start: number): number => {
  for (let i = start; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === BACKSLASH) i++;
    else if (c === QUOTE) return i;
  }
  return text.length;
};

/**
 * Returns the bound that JSON text exceeds, as the end of a sentence; null if there is none. Uses
 * neither recursion nor parsing, and one pass: JSON.parse accepts 200,000 levels, but
 * JSON.stringify overflows the stack at 5,000.
 */
export const findJsonExcess = (
  text: string,
  { depth: maxDepth = MAX_JSON_DEPTH, values: maxValues = MAX_JSON_VALUES }: JsonBounds = {},
): string | null => {
  let depth = 0;
  let values = 1;
  const { length } = text;
  for (let i = 0; i < length; i++) {
    // A switch, and no work for other characters: 8 MiB take 42 ms instead of 60.
    switch (text.charCodeAt(i)) {
      case QUOTE:
        i = endOfString(text, i + 1);
        break;
      case OPEN_BRACKET:
      case OPEN_BRACE:
        if (++depth > maxDepth) return `nests deeper than ${maxDepth} levels`;
        if (++values > maxValues) return `has over ${maxValues} values`;
        break;
      case CLOSE_BRACKET:
      case CLOSE_BRACE:
        depth--;
        break;
      case COMMA:
        if (++values > maxValues) return `has over ${maxValues} values`;
        break;
      default:
    }
  }
  return null;
};

/** True if text has a character more than `most` times. A native search: it skips all other text. */
const hasMoreThan = (text: string, character: string, most: number): boolean => {
  let count = 0;
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1))
    if (++count > most) return true;
  return false;
};

/** True if JSON text nests deeper than `limit`. */
export const nestsDeeperThan = (text: string, limit: number = MAX_JSON_DEPTH): boolean => {
  // Text with few brackets cannot nest that deep, and needs no look at each of its characters.
  const half = Math.floor(limit / 2);
  return (
    (hasMoreThan(text, '[', half) || hasMoreThan(text, '{', half)) &&
    findJsonExcess(text, { depth: limit, values: Infinity }) !== null
  );
};

/** Keys that could reach a prototype; the edge rejects a document with one of them. */
export const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__']);

/**
 * Replaces U+0000 and lone surrogates, which PostgreSQL's jsonb refuses, by U+FFFD. The edge calls
 * it once, so that every later reader sees the same bytes.
 */
export const toStorable = (text: string): string =>
  // `replaceAll` takes twice the time for a text that is full of U+0000.
  (text.includes('\0') ? text.split('\0').join('\uFFFD') : text).toWellFormed();

const toStorableArray = (items: readonly JsonValue[]): readonly JsonValue[] => {
  let changed: JsonValue[] | null = null;
  for (let at = 0; at < items.length; at++) {
    const item = items[at] as JsonValue;
    const clean = toStorableJson(item);
    if (clean !== item) (changed ??= [...items])[at] = clean;
  }
  return changed ?? items;
};

const toStorableObject = (object: JsonObject): JsonObject => {
  for (const key of Object.keys(object)) {
    const item = object[key] as JsonValue;
    if (toStorable(key) === key && toStorableJson(item) === item) continue;
    return Object.fromEntries(
      Object.entries(object).map(([name, value]) => [toStorable(name), toStorableJson(value)]),
    );
  }
  return object;
};

/**
 * Applies `toStorable` to every string and key of a JSON value of limited depth. Most values are
 * storable, and are returned without a copy: a megabyte can be a million small arrays.
 */
export const toStorableJson = (value: JsonValue): JsonValue => {
  if (typeof value === 'string') return toStorable(value);
  if (value === null || typeof value !== 'object') return value;
  return Array.isArray(value) ? toStorableArray(value) : toStorableObject(value as JsonObject);
};
