import type { IdentityFile } from './identity-document.js';
import { readEntries } from './key-lines.js';
import type { Entry } from './key-lines.js';
import type { ParsedDocument, Section } from './parse-document.js';

/** The same section or key, said differently twice: what was kept, and what was left out. */
export interface IdentityConflict {
  /** Its headings from the top, ` / ` between them; empty for what stands under none. */
  readonly section: string;
  /** Null when it is the whole section's text. */
  readonly key: string | null;
  readonly kept: IdentityFile;
  readonly dropped: IdentityFile;
}

/** What is left of a document beside those before it; `text` is empty when nothing is. */
export interface MergedDocument {
  readonly file: IdentityFile;
  readonly text: string;
}

interface Said<T> {
  readonly by: IdentityFile;
  readonly what: T;
}
interface Known {
  readonly body: Said<string>;
  /** Null where the first to write this section wrote more than `key: value` lines. */
  readonly entries: Map<string, Said<string>> | null;
}

const ROOT = '[]';
const bodyOf = (lines: readonly string[]): string => lines.join('\n').trim();
const sameText = (a: string, b: string): boolean => a.replace(/\s+/g, ' ') === b.replace(/\s+/g, ' ');

/** Everything that the documents so far have said, by section and key. */
const createLedger = () => {
  const sections = new Map<string, Known>();
  const rootEntries = new Map<string, Said<string>>();
  const conflicts: IdentityConflict[] = [];

  const keepEntries = (
    entries: readonly Entry[],
    known: Map<string, Said<string>>,
    path: readonly string[],
    file: IdentityFile,
  ): string[] =>
    entries.flatMap(({ key, lines }) => {
      const what = bodyOf(lines);
      const earlier = known.get(key);
      if (!earlier) {
        known.set(key, { by: file, what });
        return [...lines];
      }
      if (!sameText(earlier.what, what))
        conflicts.push({ section: path.join(' / '), key, kept: earlier.by, dropped: file });
      return [];
    });

  /** The lines of a section that are its document's to say. */
  const keep = ({ path, lines }: Section, file: IdentityFile): readonly string[] => {
    const body = bodyOf(lines);
    const id = JSON.stringify(path);
    if (body === '') return lines;
    const entries = readEntries(lines, id === ROOT);
    if (id === ROOT) return entries ? keepEntries(entries, rootEntries, path, file) : lines;
    const known = sections.get(id);
    if (!known) {
      const own = entries ? new Map<string, Said<string>>() : null;
      sections.set(id, { body: { by: file, what: body }, entries: own });
      return entries && own ? restoreBlanks(lines, keepEntries(entries, own, path, file)) : lines;
    }
    if (entries && known.entries) return keepEntries(entries, known.entries, path, file);
    if (!sameText(known.body.what, body))
      conflicts.push({ section: path.join(' / '), key: null, kept: known.body.by, dropped: file });
    return [];
  };
  const keepFront = (front: readonly Entry[], file: IdentityFile): string[] =>
    keepEntries(front, rootEntries, [], file);
  return { conflicts, keep, keepFront };
};

/** Nothing was left out: then blank lines stay where they were, too. */
const restoreBlanks = (lines: readonly string[], kept: readonly string[]): readonly string[] =>
  kept.length === lines.filter((line) => line.trim() !== '').length ? lines : kept;

interface Kept {
  readonly section: Section;
  readonly lines: readonly string[];
}

const isBlank = (lines: readonly string[]): boolean => bodyOf(lines) === '';
const isUnder = (inner: Section, outer: Section): boolean =>
  inner.level > outer.level && outer.path.every((name, index) => inner.path[index] === name);

/** Headings over nothing are left out; so is a title, once nothing stands under it. */
const withoutEmpty = (kept: readonly Kept[]): readonly Kept[] => {
  const useful: Kept[] = [];
  for (let at = kept.length - 1; at >= 0; at--) {
    const one = kept[at] as Kept;
    const below = useful.at(-1);
    if (
      !isBlank(one.lines) ||
      (below && one.section.heading.length > 0 && isUnder(below.section, one.section))
    )
      useful.push(one);
  }
  return useful.reverse();
};

const textOf = ({ section, lines }: Kept): string =>
  [...section.heading, ...lines, ...(isBlank(lines.slice(-1)) ? [] : [''])].join('\n');

const NAMES: Readonly<Record<IdentityFile, string>> = {
  'SOUL.md': '',
  'AGENT.md': '# Agent\n\n',
  'IDENTITY.md': '# Identity\n\n',
  'USER.md': '# User\n\n',
};

/**
 * Merges documents, the first of which has the last word: a section, or a `key: value` line, that was said before is
 * left out of those after it. What differs is a conflict, named once; what says the same is just not said twice.
 */
export const mergeDocuments = (
  documents: readonly ParsedDocument[],
): { readonly documents: readonly MergedDocument[]; readonly conflicts: readonly IdentityConflict[] } => {
  const ledger = createLedger();
  const merged = documents.map(({ file, front, sections, hasTitle }) => {
    const head = ledger.keepFront(front, file);
    const kept = sections.map((section) => ({ section, lines: ledger.keep(section, file) }));
    const body = withoutEmpty(kept)
      .map(textOf)
      .join('\n')
      .replace(/\n{3,}/g, '\n\n')
      .trim();
    const text = [head.join('\n'), body].filter((part) => part !== '').join('\n\n');
    return { file, text: text === '' || hasTitle ? text : `${NAMES[file]}${text}` };
  });
  return { documents: merged, conflicts: ledger.conflicts };
};
