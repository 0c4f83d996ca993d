import { readEntries } from './identity-document.js';
import type { Entry, IdentityFile } from './identity-document.js';
import type { ParsedDocument, Section } from './parse-document.js';

/** A section or key that two documents define differently. */
export interface IdentityConflict {
  /** Its headings from the top, separated by ` / `; empty for text without a heading. */
  readonly section: string;
  /** Null for the whole section's text. */
  readonly key: string | null;
  readonly kept: IdentityFile;
  readonly dropped: IdentityFile;
}

/** A document without the parts that earlier ones define; its `text` may be empty. */
export interface MergedDocument {
  readonly file: IdentityFile;
  readonly text: string;
}

interface Definition {
  readonly file: IdentityFile;
  readonly text: string;
}
interface Known {
  readonly body: Definition;
  /** Null where the section's first document has more than `key: value` lines in it. */
  readonly entries: Map<string, Definition> | null;
}

const ROOT = '[]';
const bodyOf = (lines: readonly string[]): string => lines.join('\n').trim();
const sameText = (a: string, b: string): boolean => a.replace(/\s+/g, ' ') === b.replace(/\s+/g, ' ');

/** Records the sections and keys of the documents so far. */
const createMergeState = () => {
  const sections = new Map<string, Known>();
  const rootEntries = new Map<string, Definition>();
  const conflicts: IdentityConflict[] = [];

  const keepEntries = (
    entries: readonly Entry[],
    known: Map<string, Definition>,
    path: readonly string[],
    file: IdentityFile,
  ): string[] =>
    entries.flatMap(({ key, lines }) => {
      const text = bodyOf(lines);
      const earlier = known.get(key);
      if (!earlier) {
        known.set(key, { file, text });
        return [...lines];
      }
      if (!sameText(earlier.text, text))
        conflicts.push({ section: path.join(' / '), key, kept: earlier.file, dropped: file });
      return [];
    });

  /** Returns the lines of a section that no earlier document defines. */
  const keep = ({ path, lines }: Section, file: IdentityFile): readonly string[] => {
    const body = bodyOf(lines);
    const id = JSON.stringify(path);
    if (body === '') return lines;
    const entries = readEntries(lines, id === ROOT);
    if (id === ROOT) return entries ? keepEntries(entries, rootEntries, path, file) : lines;
    const known = sections.get(id);
    if (!known) {
      const own = entries ? new Map<string, Definition>() : null;
      sections.set(id, { body: { file, text: body }, entries: own });
      return entries && own ? restoreBlanks(lines, keepEntries(entries, own, path, file)) : lines;
    }
    if (entries && known.entries) return keepEntries(entries, known.entries, path, file);
    if (!sameText(known.body.text, body))
      conflicts.push({ section: path.join(' / '), key: null, kept: known.body.file, dropped: file });
    return [];
  };
  const keepFront = (front: readonly Entry[], file: IdentityFile): string[] =>
    keepEntries(front, rootEntries, [], file);
  return { conflicts, keep, keepFront };
};

/** Restores blank lines where no line was left out. */
const restoreBlanks = (lines: readonly string[], kept: readonly string[]): readonly string[] =>
  kept.length === lines.filter((line) => line.trim() !== '').length ? lines : kept;

interface Kept {
  readonly section: Section;
  readonly lines: readonly string[];
}

const isBlank = (lines: readonly string[]): boolean => bodyOf(lines) === '';
const isUnder = (inner: Section, outer: Section): boolean =>
  inner.level > outer.level && outer.path.every((name, index) => inner.path[index] === name);

/** Removes headings, and a title, without content below. */
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
 * Merges documents by precedence: a section or `key: value` line of an earlier document is left out
 * of later ones. A difference is reported once as a conflict; an equal text is just not repeated.
 */
export const mergeDocuments = (
  documents: readonly ParsedDocument[],
): { readonly documents: readonly MergedDocument[]; readonly conflicts: readonly IdentityConflict[] } => {
  const state = createMergeState();
  const merged = documents.map(({ file, front, sections, hasTitle }) => {
    const head = state.keepFront(front, file);
    const kept = sections.map((section) => ({ section, lines: state.keep(section, file) }));
    const body = withoutEmpty(kept)
      .map(textOf)
      .join('\n')
      .replace(/\n{3,}/g, '\n\n')
      .trim();
    const text = [head.join('\n'), body].filter((part) => part !== '').join('\n\n');
    return { file, text: text === '' || hasTitle ? text : `${NAMES[file]}${text}` };
  });
  return { documents: merged, conflicts: state.conflicts };
};
