import { normalizeDocument, normalizeName } from './identity-document.js';
import type { IdentityDocument, IdentityFile } from './identity-document.js';
import { readFrontMatter } from './key-lines.js';
import type { Entry } from './key-lines.js';

/** A heading and what stands under it up to the next one, its lines as they are. */
export interface Section {
  readonly heading: readonly string[];
  /** Of the heading, 1 to 6; 0 without one. */
  readonly level: number;
  /** Normalised headings from the top; empty for what stands under no heading but the document's title. */
  readonly path: readonly string[];
  readonly lines: readonly string[];
}

export interface ParsedDocument {
  readonly file: IdentityFile;
  readonly front: readonly Entry[];
  readonly sections: readonly Section[];
  readonly hasTitle: boolean;
  /** What is odd about it, one sentence each. */
  readonly problems: readonly string[];
}

const ATX = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
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
  if (atx) return { level: (atx[1] ?? '').length, text: atx[2] ?? '', lines: [line] };
  const under = SETEXT.exec(lines[at + 1] ?? '');
  const begins = at === 0 || (lines[at - 1] ?? '').trim() === '';
  if (!under || !begins || NO_PARAGRAPH.test(line)) return null;
  return { level: under[1] ? 1 : 2, text: line, lines: [line, lines[at + 1] ?? ''] };
};

/** Follows code fences line by line; within one, `open` is what closes it. */
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

/** What has to be added to a text so that its last code fence ends with it; null when none is open. */
export const unclosedFence = (text: string): string | null => {
  const fences = createFences();
  text.split('\n').forEach(fences.step);
  return fences.open();
};

interface Part {
  readonly heading: Heading | null;
  readonly lines: string[];
}

const cutAtHeadings = (lines: readonly string[]): Part[] => {
  const parts: Part[] = [{ heading: null, lines: [] }];
  const fences = createFences();
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    const heading = fences.open() === null ? headingAt(lines, at) : null;
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

/** The document's name, not a section: the only heading of the first level, if it comes first and names no section itself. */
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

/** Reads the outline of a Markdown document. Every text is one; what is odd about it is said. */
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
  const title = titleOf(parts, file);
  return {
    file,
    front: read?.entries ?? [],
    sections: toSections(parts, title),
    hasTitle: title !== null,
    problems,
  };
};
