import { estimateTokens } from '../context/estimate-tokens.js';
import type { Soul } from '../context/soul.js';
import { IDENTITY_FILES } from './identity-document.js';
import type { IdentityDocument, IdentityFile } from './identity-document.js';
import { mergeDocuments } from './merge-documents.js';
import type { IdentityConflict, MergedDocument } from './merge-documents.js';
import { parseDocument, unclosedFence } from './parse-document.js';

/**
 * Some 500 tokens of prose: the estimate counts three bytes a token, English has about four, and what is asked for
 * is a page that leaves the context to the conversation.
 */
export const MAX_SOUL_TOKENS = 700;
/** Of all documents together: what memory may put into a context by default holds some facts beside it. */
export const MAX_IDENTITY_TOKENS = 1_500;

/** A document that was cut, and how much of it is there. */
export interface ClippedDocument {
  readonly file: IdentityFile;
  readonly keptTokens: number;
  readonly ofTokens: number;
}

export interface CompiledIdentity {
  /** What stands first in every context; null when the documents say nothing. */
  readonly packet: Soul | null;
  readonly conflicts: readonly IdentityConflict[];
  readonly clipped: readonly ClippedDocument[];
  readonly problems: readonly { readonly file: IdentityFile; readonly problem: string }[];
}

const BYTES_PER_TOKEN = 3;
const LAST_HIGH_SURROGATE = /[\ud800-\udbff]$/;

/** The longest beginning of a text within so many tokens: whole lines, or a part of the first one. */
const beginningOf = (text: string, tokens: number): string => {
  if (tokens <= 0) return '';
  let cut = text.slice(0, tokens * BYTES_PER_TOKEN);
  while (estimateTokens(cut) > tokens) cut = cut.slice(0, Math.floor(cut.length * 0.9));
  const line = cut.lastIndexOf('\n');
  return line > 0 ? cut.slice(0, line).trimEnd() : cut.replace(LAST_HIGH_SURROGATE, '');
};

/** Room for the note, and for the end of a code fence that the cut left open. */
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
    const ofTokens = estimateTokens(text);
    const fitted = ofTokens <= room ? { text, keptTokens: ofTokens } : clip(file, text, room);
    if (fitted.keptTokens < ofTokens) clipped.push({ file, keptTokens: fitted.keptTokens, ofTokens });
    if (fitted.text !== '') packet = before + fitted.text;
  }
  return { packet: packet === '' ? null : { text: packet, tokens: estimateTokens(packet) }, clipped };
};

/**
 * Compiles an agent's documents into the one packet that its context begins with: merged by precedence
 * (SOUL > AGENT > IDENTITY > USER), bounded, its tokens counted once. The same documents give the same bytes,
 * in whatever order they come.
 */
export const compileIdentity = (documents: readonly IdentityDocument[]): CompiledIdentity => {
  const parsed = IDENTITY_FILES.flatMap((file) => documents.filter((document) => document.file === file)).map(
    parseDocument,
  );
  const merged = mergeDocuments(parsed);
  const problems = parsed.flatMap(({ file, problems: odd }) => odd.map((problem) => ({ file, problem })));
  return { ...fit(merged.documents), conflicts: merged.conflicts, problems };
};
