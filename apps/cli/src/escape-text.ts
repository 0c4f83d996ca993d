/**
 * Characters that a terminal obeys or does not show. They are control and escape characters,
 * overrides of the direction, invisible characters, tags, and halves of surrogate pairs. Line ends
 * and tabs remain, and the joiners that scripts and emoji need.
 */
const UNSAFE =
  // eslint-disable-next-line no-control-regex -- these characters are the subject
  /\r\n|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;

const escapeOne = (character: string): string =>
  character === '\r\n' ? character : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;

/**
 * Returns text that is safe to print. Text of a model, a tool or a user cannot move the cursor,
 * change colours, reverse the direction or hide then. `ESC` becomes `\u{1b}`.
 */
export const escapeText = (text: string): string => text.replace(UNSAFE, escapeOne);
