import type { MessagePart, Turn } from './transcript.js';

/** Gives a message the text to which a person changed it. */
export const editMessage = (turn: Turn, data: Readonly<Record<string, unknown>>): Turn => {
  const content = String(data['content'] ?? '');
  if (data['part'] === 'message') return { ...turn, content, isEdited: true };
  // The new text takes the place of the last one; the others are no longer shown.
  const last = turn.parts.findLast(({ kind }) => kind === 'text');
  const parts = turn.parts
    .filter((part) => part.kind !== 'text' || part === last)
    .map((part) => (part === last && part.kind === 'text' ? { ...part, text: content } : part));
  return { ...turn, parts };
};

/** Removes a message that a person deleted. */
export const removeMessage = (turn: Turn, part: MessagePart): Turn => {
  if (turn.deleted.includes(part)) return turn;
  const deleted = [...turn.deleted, part];
  return part === 'message' ? { ...turn, content: '', deleted } : { ...turn, parts: [], deleted };
};
