/** Control, bidirectional, zero-width and tag characters, which hide or reorder what is shown. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g;

/** Most hidden characters that get an element of their own. Later ones are named in plain text. */
const MAX_MARKED = 1_000;

const nameOf = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

/** Splits a text into shown parts and names of hidden characters, such as `U+202E`. */
export const splitHidden = (text: string): { readonly text: string; readonly isHidden: boolean }[] => {
  const parts: { text: string; isHidden: boolean }[] = [];
  let end = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > end) parts.push({ text: text.slice(end, match.index), isHidden: false });
    if (parts.length > MAX_MARKED * 2) break;
    parts.push({ text: nameOf(match[0]), isHidden: true });
    end = match.index + match[0].length;
  }
  if (end < text.length) {
    const rest = text.slice(end).replaceAll(HIDDEN, (character) => `⟨${nameOf(character)}⟩`);
    parts.push({ text: rest, isHidden: false });
  }
  return parts;
};
