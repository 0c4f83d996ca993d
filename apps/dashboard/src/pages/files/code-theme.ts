import { HighlightStyle, syntaxHighlighting, type LanguageSupport } from '@codemirror/language';
import type { Extension } from '@codemirror/state';
import { EditorView, highlightSpecialChars, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

/** Characters that turn or hide text, next to those that the editor marks by itself. */
const HIDDEN =
  /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\uffa0]|[\u{e0000}-\u{e0fff}]/gu;

const theme = EditorView.theme({
  '&': { fontSize: '0.8125rem', backgroundColor: 'var(--surface)', color: 'var(--text)' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55', overflow: 'auto' },
  '.cm-gutters': {
    ...{ backgroundColor: 'var(--sunken)', color: 'var(--text-2)' },
    borderInlineEnd: '1px solid var(--border)',
  },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-activeLine': { backgroundColor: 'transparent' },
  '.cm-specialChar': { color: 'var(--bad)', backgroundColor: 'var(--bad-fill)' },
  '.cm-panels': { backgroundColor: 'var(--raised)', color: 'var(--text)' },
  '.cm-deletedChunk': { backgroundColor: 'var(--bad-fill)' },
  '.cm-searchMatch': { backgroundColor: 'var(--warn-fill)' },
});

const highlight = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: 'var(--accent)' },
  { tag: [tags.string, tags.regexp, tags.special(tags.string)], color: 'var(--ok)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--busy)' },
  { tag: [tags.comment, tags.meta], color: 'var(--text-2)', fontStyle: 'italic' },
  { tag: [tags.definition(tags.variableName), tags.propertyName, tags.attributeName], color: 'var(--warn)' },
  { tag: tags.heading, fontWeight: '700' },
  { tag: tags.strong, fontWeight: '700' },
  { tag: tags.emphasis, fontStyle: 'italic' },
  { tag: [tags.link, tags.url], color: 'var(--accent)' },
]);

/** Nonce of the page: the policy refuses a style sheet without it. */
const nonceOf = (): string =>
  document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? '';

/** Look of code, the same to read, to edit and to merge. */
export const codeLook = (label: string): Extension => [
  EditorView.cspNonce.of(nonceOf()),
  ...[theme, syntaxHighlighting(highlight), lineNumbers(), EditorView.lineWrapping],
  highlightSpecialChars({ addSpecialChars: HIDDEN }),
  EditorView.contentAttributes.of({ 'aria-label': label }),
];

const LANGUAGES: readonly (readonly [RegExp, () => Promise<LanguageSupport>])[] = [
  [/\.(md|markdown|chat)$/i, async () => (await import('@codemirror/lang-markdown')).markdown()],
  [/\.(json|ipynb|webmanifest)$/i, async () => (await import('@codemirror/lang-json')).json()],
  [/\.py$/i, async () => (await import('@codemirror/lang-python')).python()],
  [
    /\.[cm]?[jt]sx?$/i,
    async () => (await import('@codemirror/lang-javascript')).javascript({ typescript: true, jsx: true }),
  ],
];

/** Loads the language of a file by its name; null if none is known. */
export const loadLanguage = async (path: string): Promise<LanguageSupport | null> =>
  (await LANGUAGES.find(([name]) => name.test(path))?.[1]()) ?? null;
