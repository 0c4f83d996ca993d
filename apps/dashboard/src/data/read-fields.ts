export { withMessage } from '@antiphon/contracts/causes';

/** Fields of an event, of any type. */
export type Fields = Readonly<Record<string, unknown>>;

/** Returns a text of an event; empty for anything else. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
/** Returns a number of an event; 0 for anything else. */
export const numberOf = (value: unknown): number => (typeof value === 'number' ? value : 0);
/** Returns the length of a list of an event; 0 for anything else. */
export const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0);

const CUT_NOTES: Readonly<Record<string, string>> = {
  length: 'The answer was cut: it reached its output limit.',
  content_filter: 'The answer was cut: a filter of the provider ended it.',
};

/** Returns the notice of a `TurnCompleted` whose answer ends early, from its data. */
export const cutNote = (data: Fields): string | undefined => CUT_NOTES[textOf(data['cutBy'])];
