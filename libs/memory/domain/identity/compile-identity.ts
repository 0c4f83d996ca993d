import { estimateTokens } from '../context/soul.js';
import type { Soul } from '../context/soul.js';
import { IDENTITY_FILES } from './identity-document.js';
import type { IdentityDocument, IdentityFile } from './identity-document.js';
import { mergeDocuments } from './merge-documents.js';
import type { IdentityConflict, MergedDocument } from './merge-documents.js';
import { parseDocument, unclosedFence } from './parse-document.js';

/**
 * Maximum tokens of a soul: about 500 real tokens of English prose, because the estimate counts
 * three bytes a token and English has about four.
 */
export const MAX_SOUL_TOKENS = 700;
/** Maximum tokens of all documents, which leaves room for facts in the default memory budget. */
export const MAX_IDENTITY_TOKENS = 1_500;

/** A document that was cut, with the sizes before and after. */
export interface ClippedDocument {
  readonly file: IdentityFile;
  readonly keptTokens: number;
  readonly totalTokens: number;
}

export interface CompiledIdentity {
  /** Start of every context; null when all documents are blank. */
  readonly packet: Soul | null;
  readonly conflicts: readonly IdentityConflict[];
  readonly clipped: readonly ClippedDocument[];
  readonly problems: readonly { readonly file: IdentityFile; readonly problem: string }[];
}

const BYTES_PER_TOKEN = 3;
const LAST_HIGH_SURROGATE = /[\ud800-\udbff]$/;

/** Cuts a text to at most `tokens`: to whole lines, or to a part of the first line. */
const beginningOf = (text: string, tokens: number): string => {
  if (tokens <= 0) return '';
  let cut = text.slice(0, tokens * BYTES_PER_TOKEN);
  while (estimateTokens(cut) > tokens) cut = cut.slice(0, Math.floor(cut.length * 0.9));
  const line = cut.lastIndexOf('\n');
  return line > 0 ? cut.slice(0, line).trimEnd() : cut.replace(LAST_HIGH_SURROGATE, '');
};

/** Tokens reserved for the note and for closing a code fence. */
const NOTE_TOKENS = 32;

const clip = (file: IdentityFile, text: string, tokens: number): { text: string; keptTokens: number } => {
  const beginning = beginningOf(text, tokens - NOTE_TOKENS);
  if (beginning.trim() === '') return { text: '', keptTokens: 0 };
  const fence = unclosedFence(beginning);
  const whole = fence === null || fence.length > BYTES_PER_TOKEN ? beginning : `${beginning}\n${fence}`;
  const keptTokens = estimateTokens(beginning);
  const note = `[${file} is clipped here: ${keptTokens} of ${estimateTokens(text)} tokens]`;
  return { text: `${whole}\n\n${note}`, keptTokens };
};

const SEPARATOR = '\n\n';

const fit = (documents: readonly MergedDocument[]): Pick<CompiledIdentity, 'packet' | 'clipped'> => {
  const clipped: ClippedDocument[] = [];
  let packet = '';
  for (const { file, text } of documents) {
    if (text === '') continue;
    const before = packet === '' ? '' : packet + SEPARATOR;
    const left = MAX_IDENTITY_TOKENS - estimateTokens(before);
    const room = file === 'SOUL.md' ? Math.min(MAX_SOUL_TOKENS, left) : left;
    const totalTokens = estimateTokens(text);
    const fitted = totalTokens <= room ? { text, keptTokens: totalTokens } : clip(file, text, room);
    if (fitted.keptTokens < totalTokens) clipped.push({ file, keptTokens: fitted.keptTokens, totalTokens });
    if (fitted.text !== '') packet = before + fitted.text;
  }
  return { packet: packet === '' ? null : { text: packet, tokens: estimateTokens(packet) }, clipped };
};

/**
 * Compiles an agent's documents into the packet that starts its contexts. They are merged by
 * precedence (SOUL > AGENT > IDENTITY > USER) and bounded. The same documents give the same bytes
 * in any order.
 */
export const compileIdentity = (documents: readonly IdentityDocument[]): CompiledIdentity => {
  const parsed = IDENTITY_FILES.flatMap((file) => documents.filter((document) => document.file === file)).map(
    parseDocument,
  );
  const merged = mergeDocuments(parsed);
  const problems = parsed.flatMap(({ file, problems: odd }) => odd.map((problem) => ({ file, problem })));
  return { ...fit(merged.documents), conflicts: merged.conflicts, problems };
};
