import { z } from 'zod';
import { parseNetwork } from './network.js';
import { isOrigin } from './origin.js';
import { TomlFloat } from './toml-value.js';

const DECIMAL = /^\+?(\d{1,12})(?:\.(\d{1,40}))?$/;
/** Maximum amount: sums of many larger ones would not be exact integers. */
const MAX_USD = 1_000_000_000;

/**
 * Converts US dollars as written to integer micro-dollars, digit by digit (no binary fractions).
 * Returns null if the text is negative, over a billion, not finite, has an exponent, or is finer
 * than a micro-dollar.
 */
export const usdToMicro = (value: unknown): number | null => {
  if (typeof value === 'number')
    return Number.isInteger(value) && value >= 0 && value <= MAX_USD ? value * 1e6 : null;
  if (!(value instanceof TomlFloat)) return null;
  const match = DECIMAL.exec(value.text.replaceAll('_', ''));
  const fraction = match?.[2] ?? '';
  if (match === null || /[1-9]/.test(fraction.slice(6))) return null;
  const micro = Number(match[1]) * 1e6 + Number(fraction.slice(0, 6).padEnd(6, '0'));
  return micro <= MAX_USD * 1e6 ? micro : null;
};

/**
 * Expected value of a key, as a sentence and as a line to copy. Errors and the reference show it.
 */
export interface Hint {
  readonly expected: string;
  readonly example: string;
}
export const hints = z.registry<Hint>();

export const hint = <T extends z.ZodType>(schema: T, expected: string, example: string): T => {
  hints.add(schema, { expected, example });
  return schema;
};

/**
 * Settings that answers may show. A text that is not here counts as a secret, of which an answer
 * says only whether it is set. Numbers, booleans and enumerations need no entry.
 */
export const shown = z.registry<{ readonly unit: 'micro-usd' | null }>();

/** Permits answers to show a setting. */
export const show = <T extends z.ZodType>(schema: T, unit: 'micro-usd' | null = null): T => {
  shown.add(schema, { unit });
  return schema;
};

export const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
/** A tool, or all whose names begin with what is before `*`. */
export const TOOL = /^(?:[A-Za-z0-9_-]{1,64}|[A-Za-z0-9_-]{0,63}\*)$/;
const ORIGIN_RULE =
  'an origin as browsers send it: http or https, a host in lower case, a port unless it is the default; no path and no *';
const NAME_RULE = '1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit';

export const name = (example: string) => show(hint(z.string().regex(NAME), NAME_RULE, example));
export const text = (what: string, example: string, max = 64 * 1024) =>
  hint(z.string().min(1).max(max), `${what} (a string that is not empty)`, example);
export const shownText = (what: string, example: string, max?: number) => show(text(what, example, max));
export const int = (min: number, max: number, what: string, example: string) =>
  hint(z.int().min(min).max(max), `${what}: an integer from ${min} to ${max}`, example);
export const bool = (what: string, example: string) => hint(z.boolean(), `${what}: true or false`, example);
export const usd = (what: string, example: string) =>
  show(
    hint(
      z.custom<unknown>((value) => usdToMicro(value) !== null).transform((value) => usdToMicro(value) ?? 0),
      `${what}: US dollars, 0 or more, at most six decimals, no exponent`,
      example,
    ),
    'micro-usd',
  );
export const tokens = (what: string, example: string) =>
  hint(
    z.int().min(0).max(Number.MAX_SAFE_INTEGER),
    `${what} in tokens: an integer, 0 or more, where 0 means spend nothing`,
    example,
  );
export const names = (what: string, pattern: RegExp, example: string) =>
  hint(z.array(show(hint(z.string().regex(pattern), what, example))), `a list of ${what}`, example);
export const networks = (what: string, example: string) => {
  const network = z.string().refine((value) => parseNetwork(value) !== null);
  const list = z.array(show(hint(network, 'an IP address or a CIDR range', example)));
  return hint(list, `a list of the addresses of ${what}, as IP addresses or CIDR ranges`, example);
};

/** Most origins of one configuration. */
const MAX_ORIGINS = 50;

export const origins = (example: string) => {
  const origin = show(hint(z.string().max(300).refine(isOrigin), ORIGIN_RULE, example));
  return hint(
    z.array(origin).max(MAX_ORIGINS),
    `a list of at most ${MAX_ORIGINS} origins of web pages`,
    example,
  );
};

export const oneWorkspace = () =>
  show(
    hint(
      z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/),
      'the id of a workspace (a-z, 0-9 and dashes)',
      'workspace = "acme"',
    ),
  );

export const workspace = () =>
  show(
    hint(
      z.string().regex(/^(?:\*|[a-z0-9][a-z0-9-]{0,62})$/),
      'the id of a workspace (a-z, 0-9 and dashes), or * for all of them',
      'workspace = "acme"',
    ),
  );

export const perSecond = (what: string, key: string, value: number) =>
  int(
    0,
    1_000_000_000,
    `${what} of one API key per second, where 0 means no limit`,
    `${key} = ${value}`,
  ).default(value);

/** Seconds until a request must have arrived. */
export const seconds = (what: string, key: string, otherwise: number) =>
  int(1, 3_600, `seconds for ${what} to arrive`, `${key} = ${otherwise}`).default(otherwise);

/** Input of an absent section: each key gets its default. */
export const NOTHING = {};

export const section = <T extends z.ZodType>(schema: T, key: string) =>
  hint(schema, `a table, [${key}]`, `[${key}]`).prefault(NOTHING as z.input<T>);
export const list = <T extends z.ZodType>(schema: T, key: string) =>
  hint(
    z.array(hint(schema, `a table in double brackets, [[${key}]]`, `[[${key}]]`)),
    `tables in double brackets, [[${key}]]`,
    `[[${key}]]`,
  ).default([]);
