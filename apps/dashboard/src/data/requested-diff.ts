import { fieldsOf, textOf } from './read-fields.js';

const mark = (sign: '-' | '+', text: unknown): string[] =>
  typeof text === 'string' && text !== '' ? text.split('\n').map((line) => sign + line) : [];

/**
 * Returns the change that a call of `edit` or `write` asks for, as a diff without places; null for
 * other tools. The preview of an approval is the diff of the whole file.
 */
export const requestedDiff = (tool: string, input: unknown): string | null => {
  if (tool !== 'edit' && tool !== 'write') return null;
  const { edits } = fieldsOf(input);
  const given = Array.isArray(edits) ? edits.map(fieldsOf) : [fieldsOf(input)];
  if (given.some(({ path }) => typeof path !== 'string')) return null;
  const lines = given.flatMap(({ path, old, new: added, content }, index) => [
    ...(index > 0 && given[index - 1]?.['path'] === path
      ? ['@@']
      : [`--- ${textOf(path)}`, `+++ ${textOf(path)}`]),
    ...mark('-', old),
    ...mark('+', added ?? content),
  ]);
  return lines.join('\n');
};
