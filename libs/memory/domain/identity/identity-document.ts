/** The documents that say who an agent is, in order of precedence: what an earlier one says, a later one cannot change. */
export const IDENTITY_FILES = ['SOUL.md', 'AGENT.md', 'IDENTITY.md', 'USER.md'] as const;
export type IdentityFile = (typeof IDENTITY_FILES)[number];

/** A document as it was read. */
export interface IdentityDocument {
  readonly file: IdentityFile;
  readonly text: string;
}

/** Tab and line break are the only control characters that a page of text has a use for. */
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** A document's text with one kind of line break, without control characters and blank ends. */
export const normalizeDocument = (text: string): string =>
  text
    .replace(/^\ufeff/, '')
    .replace(/\r\n?/g, '\n')
    .replace(CONTROLS, '')
    .toWellFormed()
    .replace(/^(?:[ \t]*\n)+/, '')
    .trimEnd();

/** Of a heading; whatever comes after is not looked at, so that no file makes comparing expensive. */
const MAX_NAME_CHARS = 200;

/** What two headings or keys have in common when they mean the same: neither case, emphasis, spaces nor closing marks count. */
export const normalizeName = (name: string): string =>
  name
    .slice(0, MAX_NAME_CHARS)
    .normalize('NFKC')
    .replace(/[*_`]/g, '')
    .replace(/\s+/g, ' ')
    .replace(/[\s:#]+$/, '')
    .trim()
    .toLowerCase();
