/** Reading what a provider sent: nothing of it is believed to have the shape that its vendor's types promise. */
export type Fields = Readonly<Record<string, unknown>>;

export const fieldsOf = (value: unknown): Fields | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** More tokens than any call can use: beyond it a number is nonsense, and could overflow a ledger. */
const MAX_TOKENS = 1_000_000_000;

/** A count of tokens, or null for anything that is none: negative, fractional, huge, or a string. */
export const countOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS ? value : null;
