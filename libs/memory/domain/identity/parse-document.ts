import { normalizeDocument, normalizeName, readFrontMatter } from './identity-document.js';
import type { Entry, IdentityDocument, IdentityFile } from './identity-document.js';

/** A heading and its lines up to the next heading. */
export interface Section {
  readonly heading: readonly string[];
  /** Level of the heading, 1 to 6; 0 without one. */
  readonly level: number;
  /** Normalised headings from the top; empty for text under the document's title or none. */
  readonly path: readonly string[];
  readonly lines: readonly string[];
}

export interface ParsedDocument {
  readonly file: IdentityFile;
  readonly front: readonly Entry[];
  readonly sections: readonly Section[];
  readonly hasTitle: boolean;
  /** Problems of its form, one sentence each. */
  readonly problems: readonly string[];
}

/** Maximum number of headings of a document that begin a section. */
const MAX_HEADINGS = 2_000;

const ATX = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const SETEXT = /^ {0,3}(?:(=+)|-{3,})[ \t]*$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const NO_PARAGRAPH = /^[ \t]*(?:[-*+>|]|\d+[.)]|$)/;

interface Heading {
  readonly level: number;
  readonly text: string;
  readonly lines: readonly string[];
}

const headingAt = (lines: readonly string[], at: number): Heading | null => {
  const line = lines[at] ?? '';
  const atx = ATX.exec(line);
  if (atx)
    return { level: (atx[1] ?? '').length, text: line.slice(atx[0].length).trimStart(), lines: [line] };
  const under = SETEXT.exec(lines[at + 1] ?? '');
  const begins = at === 0 || (lines[at - 1] ?? '').trim() === '';
  if (!under || !begins || NO_PARAGRAPH.test(line)) return null;
  return { level: under[1] ? 1 : 2, text: line, lines: [line, lines[at + 1] ?? ''] };
};

/** Tracks code fences line by line; within one, `open` returns its closing mark. */
const createFences = () => {
  let open: string | null = null;
  return {
    open: () => open,
    step: (line: string): void => {
      const mark = FENCE.exec(line)?.[1];
      if (mark === undefined) return;
      if (open === null) open = mark;
      else if (mark.startsWith(open) && line.trim() === mark) open = null;
    },
  };
};

/** Returns the mark that closes the last code fence of a text; null when none is open. */
export const unclosedFence = (text: string): string | null => {
  const fences = createFences();
  text.split('\n').forEach(fences.step);
  return fences.open();
};

interface Part {
  readonly heading: Heading | null;
  readonly lines: string[];
}

/** Cuts lines at their headings. Those after the last permitted one are text. */
const cutAtHeadings = (lines: readonly string[]): Part[] => {
  const parts: Part[] = [{ heading: null, lines: [] }];
  const fences = createFences();
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    const mayBegin = fences.open() === null && parts.length <= MAX_HEADINGS;
    const heading = mayBegin ? headingAt(lines, at) : null;
    if (heading) {
      parts.push({ heading, lines: [] });
      at += heading.lines.length - 1;
    } else {
      fences.step(line);
      parts.at(-1)?.lines.push(line);
    }
  }
  return parts;
};

/** Returns the document's title: the only first-level heading, if it is first and no section. */
const titleOf = (parts: readonly Part[], file: IdentityFile): Heading | null => {
  const headings = parts.flatMap(({ heading }) => heading ?? []);
  const [first, ...others] = headings;
  if (first?.level !== 1 || others.some(({ level }) => level === 1)) return null;
  const named = normalizeName(first.text).replace(/\.md$/, '') === normalizeName(file).replace(/\.md$/, '');
  return others.length > 0 || named ? first : null;
};

const toSections = (parts: readonly Part[], title: Heading | null): Section[] => {
  const above: { level: number; name: string }[] = [];
  return parts.map(({ heading, lines }) => {
    if (!heading || heading === title)
      return { heading: heading?.lines ?? [], level: heading?.level ?? 0, path: [], lines };
    while ((above.at(-1)?.level ?? 0) >= heading.level) above.pop();
    above.push({ level: heading.level, name: normalizeName(heading.text) });
    return { heading: heading.lines, level: heading.level, path: above.map(({ name }) => name), lines };
  });
};

/** Parses the outline of a Markdown document. Every text is valid; problems are listed. */
export const parseDocument = ({ file, text }: IdentityDocument): ParsedDocument => {
  const problems: string[] = [];
  let lines = normalizeDocument(text).split('\n');
  const front = readFrontMatter(lines);
  const read = typeof front === 'string' ? null : front;
  if (front === 'unclosed') problems.push('its front matter does not end, and is taken as text');
  if (front === 'unreadable')
    problems.push('its front matter is not `key: value` lines, and is taken as text');
  if (read) lines = lines.slice(read.length);
  const open = unclosedFence(lines.join('\n'));
  if (open !== null) {
    problems.push('a code fence in it does not end, and is closed at its end');
    lines.push(open);
  }
  const parts = cutAtHeadings(lines);
  if (parts.length > MAX_HEADINGS)
    problems.push(`it has ${MAX_HEADINGS} headings or more, and all after them is taken as text`);
  const title = titleOf(parts, file);
  return {
    file,
    front: read?.entries ?? [],
    sections: toSections(parts, title),
    hasTitle: title !== null,
    problems,
  };
};
