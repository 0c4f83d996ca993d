import type { JsonValue } from '@antiphon/kernel';
import type { TurnToolCall } from './session-state.js';

/** Maximum length of edited arguments in a note to the model, UTF-16 units. */
const MAX_SHOWN = 2_000;

/** Returns the note that the result of a call with edited arguments begins with. */
export const editNote = (input: JsonValue): string => {
  const text = JSON.stringify(input);
  const shown = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…`.toWellFormed() : text;
  return `[A person changed the arguments of this call before approving it. It ran with: ${shown}]\n`;
};

/** Returns the arguments that a model asked for, also where an approver changed them. */
export const askedInputOf = ({ input, askedInput = input }: TurnToolCall): TurnToolCall['input'] =>
  askedInput;

/** Returns the result of a call for its model, with a note if its arguments were changed. */
export const withEditNote = ({ input, askedInput }: TurnToolCall, content: string): string =>
  askedInput === undefined ? content : editNote(input) + content;
