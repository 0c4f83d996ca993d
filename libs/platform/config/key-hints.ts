import { z } from 'zod';
import { usdToMicro } from './money.js';

/** What a key takes, in words and as a line to copy; shown with each error and in the reference file. */
export interface Hint {
  readonly expected: string;
  readonly example: string;
}
export const hints = z.registry<Hint>();

export const hint = <T extends z.ZodType>(schema: T, expected: string, example: string): T => {
  hints.add(schema, { expected, example });
  return schema;
};

export const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
export const TOOL = /^[A-Za-z0-9_-]{1,64}$/;
const NAME_RULE = '1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit';

export const name = (example: string) => hint(z.string().regex(NAME), NAME_RULE, example);
export const text = (what: string, example: string, max = 64 * 1024) =>
  hint(z.string().min(1).max(max), `${what} (a string that is not empty)`, example);
export const int = (min: number, max: number, what: string, example: string) =>
  hint(z.int().min(min).max(max), `${what}: an integer from ${min} to ${max}`, example);
export const bool = (what: string, example: string) => hint(z.boolean(), `${what}: true or false`, example);
export const usd = (what: string, example: string) =>
  hint(
    z.custom<unknown>((value) => usdToMicro(value) !== null).transform((value) => usdToMicro(value) ?? 0),
    `${what}: US dollars, 0 or more, at most six decimals, no exponent`,
    example,
  );
export const tokens = (what: string, example: string) =>
  hint(
    z.int().min(0).max(Number.MAX_SAFE_INTEGER),
    `${what} in tokens: an integer, 0 or more, where 0 means spend nothing`,
    example,
  );
export const names = (what: string, pattern: RegExp, example: string) =>
  hint(z.array(hint(z.string().regex(pattern), what, example)), `a list of ${what}`, example);
