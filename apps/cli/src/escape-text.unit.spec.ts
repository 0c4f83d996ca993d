import { describe, expect, it } from '@jest/globals';
import { escapeText } from './escape-text.js';

describe('escapeText', () => {
  it.each([
    ['a colour', '\u001b[31mred\u001b[0m', '\\u{1b}[31mred\\u{1b}[0m'],
    ['a title of the window', '\u001b]0;owned\u0007', '\\u{1b}]0;owned\\u{7}'],
    ['a copy to the clipboard', '\u001b]52;c;cm0=\u001b\\', '\\u{1b}]52;c;cm0=\\u{1b}\\'],
    ['the one-character form of ESC [', '\u009b2J', '\\u{9b}2J'],
    ['a return that overwrites the line', 'paid\rfree', 'paid\\u{d}free'],
    ['a backspace', 'no\b\byes', 'no\\u{8}\\u{8}yes'],
    ['a null', 'a\u0000b', 'a\\u{0}b'],
    ['a delete', 'a\u007fb', 'a\\u{7f}b'],
    ['an override of the direction', 'user\u202etxt.exe', 'user\\u{202e}txt.exe'],
    ['isolates', '\u2066a\u2069', '\\u{2066}a\\u{2069}'],
    ['direction marks', 'a\u200eb\u200fc\u061cd', 'a\\u{200e}b\\u{200f}c\\u{61c}d'],
    ['invisible characters', 'a\u200bb\u2060c\ufeffd\u00ade', 'a\\u{200b}b\\u{2060}c\\u{feff}d\\u{ad}e'],
    ['line ends of Unicode', 'a\u2028b\u2029c', 'a\\u{2028}b\\u{2029}c'],
    ['tags', 'a\u{e0041}b', 'a\\u{e0041}b'],
    ['half of a surrogate pair', 'a\ud800b', 'a\\u{d800}b'],
  ])('escapes %s', (_, text, safe) => expect(escapeText(text)).toBe(safe));

  it.each([
    ['line ends and tabs', 'a\nb\r\nc\td'],
    ['scripts', '漢字 العربية עברית हिन्दी'],
    ['emoji with joiners', '👩\u200d👩\u200d👧 🏳️\u200d🌈'],
    ['a non-joiner', 'می\u200cخواهم'],
    ['a backslash', 'C:\\u{1b}'],
  ])('leaves %s as they are', (_, text) => expect(escapeText(text)).toBe(text));
});
