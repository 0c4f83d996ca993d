import type { CommandContext } from '../output.js';
import { countTurns } from './list-sessions.js';

export interface FindOptions {
  readonly at?: string;
}

/** Prints the turns of a session that have a text, the oldest first. */
export const findTexts = async (
  { output, http }: CommandContext,
  id: string,
  text: string,
  options: FindOptions,
): Promise<void> => {
  const { findTexts: find } = await http();
  const page = await find({ params: { id }, query: { text, ...options } });
  const { found, total } = page;
  const lines = found.map(({ turnId, position }) => `${turnId}  position ${position}`);
  const cut = found.length < total ? [`the first ${found.length} of ${countTurns(total)}`] : [];
  output.result(page, total === 0 ? 'not found' : [...lines, ...cut].join('\n'));
};
