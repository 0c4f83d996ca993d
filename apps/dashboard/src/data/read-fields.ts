export { withMessage } from '@antiphon/contracts/causes';

/** Fields of an event, of any type. */
export type Fields = Readonly<Record<string, unknown>>;

/** Returns a text of an event; empty for anything else. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
/** Returns a number of an event; 0 for anything else. */
export const numberOf = (value: unknown): number => (typeof value === 'number' ? value : 0);
/** Returns the fields of an object; none of anything else. */
export const fieldsOf = (value: unknown): Fields =>
  value !== null && typeof value === 'object' ? (value as Fields) : {};
