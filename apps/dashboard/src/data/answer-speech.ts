import type { Nodes } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';
import type { Turn } from './transcript.js';
import { partsOf, textLengthOf } from './turn-parts.js';

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** Start of a line that ends the paragraph before it: a list item, a heading, a quote, a table row. */
const BLOCK = /^\s*(?:[-*+>|]|#{1,6}\s|\d+[.)]\s)/;
const MARKER = /^\s*(?:(?:[-*+>]|#{1,6}|\d+[.)])\s+)*/;
const SENTENCE = /[.!?…]["'”’)\]*_`]*(?=\s)|[。！？]/g;

const lastSentence = (line: string): number => {
  const from = MARKER.exec(line)?.[0].length ?? 0;
  const last = [...line.slice(from).matchAll(SENTENCE)].at(-1);
  return last ? from + last.index + last[0].length : 0;
};

/** Returns the end of the last whole sentence or block of a growing text. */
export const endOfSentences = (text: string): number => {
  let [end, at] = [0, 0];
  let fence: string | null = null;
  for (const line of text.split('\n')) {
    const next = at + line.length + 1;
    const mark = FENCE.exec(line)?.[1];
    if (fence !== null) {
      if (mark?.startsWith(fence) && next <= text.length) [fence, end] = [null, next];
    } else {
      if (mark || line.trim() === '' || BLOCK.test(line)) end = Math.max(end, at);
      if (mark) fence = mark;
      else if (lastSentence(line) > 0) end = at + lastSentence(line);
    }
    at = next;
  }
  return end;
};

const OPTIONS = { extensions: [gfm({ singleTilde: false })], mdastExtensions: [gfmFromMarkdown()] };
/** Longer texts are said as they are: parsing one would freeze the page. */
const MAX_PARSED = 20_000;

const codeWords = (lang: string | null | undefined, lines: number): string =>
  `Code${lang ? ` in ${lang}` : ''}, ${lines} ${lines === 1 ? 'line' : 'lines'}.`;

const wordsOf = (node: Nodes): string => {
  if (node.type === 'code') return codeWords(node.lang, node.value.split('\n').length);
  if (node.type === 'image') return `Image: ${node.alt ?? ''}`;
  return 'value' in node ? node.value : '';
};

/** Returns the words of a Markdown text. Of a code block only its length is said. */
export const toSpeech = (markdown: string): string => {
  if (markdown.length > MAX_PARSED) return markdown.trim();
  const words: string[] = [];
  const left: { node: Nodes; after: string }[] = [{ node: fromMarkdown(markdown, OPTIONS), after: '' }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { node, after } = next;
    words.push(wordsOf(node));
    if ('children' in node) {
      const isBlock = !['paragraph', 'heading', 'strong', 'emphasis', 'delete', 'link', 'tableCell'].includes(
        node.type,
      );
      const each = node.type === 'tableRow' ? ', ' : isBlock ? ' ' : '';
      left.push({ node: { type: 'text', value: after }, after: '' });
      left.push(
        ...node.children.toReversed().map((child): (typeof left)[number] => ({ node: child, after: each })),
      );
    } else words.push(after);
  }
  return words
    .join('')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/(?<![ ,])[ ,]+$/g, '')
    .trim();
};

/** An answer as far as it has arrived. */
export interface GrowingAnswer {
  readonly turnId: string;
  readonly position: number;
  readonly text: string;
  /** Length of the text of ended model calls: it does not change any more. */
  readonly wholeLength: number;
  /** Null while the answer grows. */
  readonly status: Turn['status'] | null;
}

/** Returns the text of a turn as far as events and frames have brought it. */
export const growingAnswer = (turn: Turn, live: string): GrowingAnswer => {
  const { turnId, firstPosition: position, endedAt, status } = turn;
  const ended = partsOf(turn)
    .map((part) => (part.kind === 'text' ? part.text : ''))
    .join('');
  const tail = endedAt === null ? live.slice(textLengthOf(turn)) : '';
  return {
    turnId,
    position,
    text: ended + tail,
    wholeLength: ended.length,
    status: endedAt === null ? null : status,
  };
};

/**
 * Returns what a screen reader says next about the answers of a session. It says whole sentences
 * and closed blocks, each once, and the end of an answer. Earlier answers are not said.
 */
export class AnswerSpeech {
  readonly #said = new Map<string, string>();
  #from: number | null = null;

  /** Returns the new words; an empty string for none. Answers are in the order of the session. */
  next(answers: readonly GrowingAnswer[]): string {
    this.#from ??=
      answers.find(({ status }) => status === null)?.position ?? (answers.at(-1)?.position ?? 0) + 1;
    const from = this.#from;
    const messages = answers.filter(({ position }) => position >= from).map((answer) => this.#say(answer));
    const firstOpen = answers.find(({ position, status }) => position >= from && status === null);
    this.#from = firstOpen?.position ?? Math.max(from, (answers.at(-1)?.position ?? 0) + 1);
    return messages.filter((message) => message !== '').join(' ');
  }

  #say({ turnId, text, wholeLength, status }: GrowingAnswer): string {
    const said = this.#said.get(turnId) ?? '';
    const isSame = text.startsWith(said);
    // A frame may be gone before the event that makes its text a fact.
    if (!isSame && said.startsWith(text) && status === null) return '';
    const start = isSame ? said.length : 0;
    const rest = text.slice(start);
    const end = status === null ? Math.max(wholeLength - start, endOfSentences(rest)) : rest.length;
    const words = toSpeech(rest.slice(0, end));
    this.#said.set(turnId, text.slice(0, start + Math.max(0, end)));
    if (status === null) return !isSame && words !== '' ? `The answer begins again. ${words}` : words;
    this.#said.delete(turnId);
    return [words, `The answer has ended: ${status}.`].filter((part) => part !== '').join(' ');
  }
}
