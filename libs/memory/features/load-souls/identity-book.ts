import { createHash } from 'node:crypto';
import { compileIdentity } from '@antiphon/memory-domain';
import type { CompiledIdentity, IdentityFile, Soul } from '@antiphon/memory-domain';
import type { Logger } from '@antiphon/observability';
import { sourcesOf } from './identity-sources.js';
import type { IdentifiedAgent, IdentitySource } from './identity-sources.js';
import { readDocument, signDocument } from './read-document.js';
import type { DocumentSignature, ReadDocument } from './read-document.js';
import { reportIdentity } from './report-identity.js';
import type { FoundDocument } from './report-identity.js';

/** What is in force for one agent, for `status`. */
export interface IdentityFact {
  readonly agentId: string;
  /** SHA-256 of the packet, hex; two processes that show the same one use the same bytes. */
  readonly digest: string | null;
  readonly tokens: number;
  readonly conflicts: number;
}

/** Who the configured agents are: each one's documents, compiled into the packet that its contexts begin with. */
export interface IdentityBook {
  /** As the files are now: an edit shows in the next context. Null for an agent that has no documents configured. */
  soulOf(agentId: string): Promise<Soul | null>;
  facts(): readonly IdentityFact[];
}

interface Page {
  readonly soulNow: () => Promise<Soul | null>;
  readonly fact: () => IdentityFact;
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** What was found, so that the same again is neither compiled nor reported again. */
const contentOf = (documents: readonly FoundDocument[]): string =>
  sha256(JSON.stringify(documents.map(({ source, found }) => [source.path, found])));

const compile = (documents: readonly FoundDocument[]): CompiledIdentity =>
  compileIdentity(
    documents.flatMap(({ source, found }) =>
      found.status === 'read' ? [{ file: source.file, text: found.text }] : [],
    ),
  );

/** An agent that should have documents and has none still knows its name. */
const orDefault = (compiled: CompiledIdentity, { name }: IdentifiedAgent): CompiledIdentity =>
  compiled.packet ? compiled : compileIdentity([{ file: 'SOUL.md', text: `You are ${name}.` }]);

const isKnown = (before: readonly DocumentSignature[], now: readonly DocumentSignature[]): boolean =>
  before.length === now.length && now.every(({ text, settled }, i) => settled && before[i]?.text === text);

const createPage = (
  agent: IdentifiedAgent,
  sources: readonly IdentitySource[],
  logger: Logger,
  now: () => number,
): Page => {
  let signatures: readonly DocumentSignature[] = [];
  let content = '';
  let statuses: ReadonlyMap<IdentityFile, ReadDocument['status']> = new Map();
  let soul: Soul | null = null;
  let fact: IdentityFact = { agentId: agent.id, digest: null, tokens: 0, conflicts: 0 };
  let running: Promise<unknown> = Promise.resolve();
  let waiting: Promise<Soul | null> | null = null;

  const become = (documents: readonly FoundDocument[]): void => {
    const found = contentOf(documents);
    if (found === content) return;
    content = found;
    const own = compile(documents);
    const compiled = orDefault(own, agent);
    soul = compiled.packet;
    const news = documents.filter(({ source, found: { status } }) => statuses.get(source.file) !== status);
    statuses = new Map(documents.map(({ source, found: { status } }) => [source.file, status]));
    const digest = sha256(soul?.text ?? '');
    fact = { agentId: agent.id, digest, tokens: soul?.tokens ?? 0, conflicts: compiled.conflicts.length };
    const isDefault = own.packet === null;
    reportIdentity(documents, { ...own, packet: soul }, logger.child({ agentId: agent.id }), {
      news,
      digest,
      isDefault,
    });
  };
  const look = async (): Promise<Soul | null> => {
    const signed = await Promise.all(sources.map((source) => signDocument(source, now())));
    if (isKnown(signatures, signed)) return soul;
    const read = await Promise.all(sources.map((source): Promise<ReadDocument> => readDocument(source)));
    signatures = signed;
    become(sources.map((source, index) => ({ source, found: read[index] as ReadDocument })));
    return soul;
  };
  return {
    // Who asks while files are being looked at may know of a newer edit: one more look, for all of them together.
    soulNow: () =>
      (waiting ??= running.then(() => {
        waiting = null;
        const looked = look();
        running = looked.catch(() => undefined);
        return looked;
      })),
    fact: () => fact,
  };
};

/**
 * Reads and compiles the documents of each agent (`identity_dir`, `soul_path`), and looks again whenever a context is
 * assembled. What is missing or cannot be used is a warning; no file can make a turn fail.
 */
export const openIdentityBook = async (
  agents: readonly IdentifiedAgent[],
  logger: Logger,
  now: () => number = Date.now,
): Promise<IdentityBook> => {
  const pages = new Map<string, Page>();
  for (const agent of agents) {
    const sources = sourcesOf(agent);
    if (sources.length > 0) pages.set(agent.id, createPage(agent, sources, logger, now));
  }
  await Promise.all([...pages.values()].map((page) => page.soulNow()));
  return {
    soulOf: async (agentId) => (await pages.get(agentId)?.soulNow()) ?? null,
    facts: () => [...pages.values()].map((page) => page.fact()),
  };
};
