import type { CompiledIdentity, IdentityFile, Soul } from '@antiphon/memory-domain';
import type { Logger } from '@antiphon/observability';
import { createHash } from 'node:crypto';
import { compileIdentity } from '@antiphon/memory-domain';
import { readDocument, signDocument, sourcesOf } from './identity-documents.js';
import type {
  DocumentSignature,
  IdentifiedAgent,
  IdentitySource,
  ReadDocument,
} from './identity-documents.js';

export interface FoundDocument {
  readonly source: IdentitySource;
  readonly found: ReadDocument;
}

const reportFiles = (documents: readonly FoundDocument[], logger: Logger, isDefault: boolean): void => {
  const missing = documents.filter(({ found }) => found.status === 'missing');
  if (missing.length > 0) {
    const paths = missing.map(({ source }) => source.path);
    logger.warn({ missing: paths, isDefault }, 'identity documents do not exist');
  }
  for (const { source, found } of documents)
    if (found.status === 'unusable')
      logger.warn({ path: source.path, reason: found.reason }, 'identity document unusable');
};

export interface ReportDetails {
  /** Documents whose status changed since the last report: a missing one is logged once. */
  readonly changed: readonly FoundDocument[];
  readonly digest: string;
  /** True without a usable document: the soul is then the agent's name. */
  readonly isDefault: boolean;
}

/** Logs an agent's identity for the operator; each conflict is one line. */
export const reportIdentity = (
  documents: readonly FoundDocument[],
  { packet, conflicts, clipped, problems }: CompiledIdentity,
  logger: Logger,
  { changed, digest, isDefault }: ReportDetails,
): void => {
  reportFiles(changed, logger, isDefault);
  const pathOf = (file: IdentityFile): string =>
    documents.find(({ source }) => source.file === file)?.source.path ?? file;
  for (const { file, problem } of problems)
    logger.warn({ path: pathOf(file), problem }, 'identity document malformed');
  for (const conflict of conflicts) logger.warn({ ...conflict }, 'identity documents conflict');
  for (const { file, ...tokens } of clipped)
    logger.warn({ path: pathOf(file), ...tokens }, 'identity document clipped');
  const about = { digest, tokens: packet?.tokens ?? 0, conflicts: conflicts.length };
  logger.info(about, 'agent identity compiled');
};

/** Current identity of one agent, for `status`. */
export interface IdentityFact {
  readonly agentId: string;
  /** SHA-256 of the packet, hex. */
  readonly digest: string | null;
  readonly tokens: number;
  readonly conflicts: number;
}

/**
 * Identities of the configured agents: their documents, compiled into the packet that starts a
 * context.
 */
export interface IdentityStore {
  /** Returns the soul as the files are now; null for an agent without configured documents. */
  soulOf(agentId: string): Promise<Soul | null>;
  facts(): readonly IdentityFact[];
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * Returns a digest of the documents, so that unchanged ones are neither compiled nor reported
 * again.
 */
const contentDigest = (documents: readonly FoundDocument[]): string =>
  sha256(JSON.stringify(documents.map(({ source, found }) => [source.path, found])));

const compile = (documents: readonly FoundDocument[]): CompiledIdentity =>
  compileIdentity(
    documents.flatMap(({ source, found }) =>
      found.status === 'read' ? [{ file: source.file, text: found.text }] : [],
    ),
  );

/** Returns the compiled identity, or one with the agent's name where it has no usable document. */
const withDefault = (compiled: CompiledIdentity, { name }: IdentifiedAgent): CompiledIdentity =>
  compiled.packet ? compiled : compileIdentity([{ file: 'SOUL.md', text: `You are ${name}.` }]);

const isUnchanged = (before: readonly DocumentSignature[], now: readonly DocumentSignature[]): boolean =>
  before.length === now.length && now.every(({ text, settled }, i) => settled && before[i]?.text === text);

/** Compiled identity of one agent, refreshed whenever its files have changed. */
class AgentIdentity {
  readonly #agent: IdentifiedAgent;
  readonly #sources: readonly IdentitySource[];
  readonly #logger: Logger;
  readonly #now: () => number;
  #signatures: readonly DocumentSignature[] = [];
  #digest = '';
  #statuses: ReadonlyMap<IdentityFile, ReadDocument['status']> = new Map();
  #soul: Soul | null = null;
  #fact: IdentityFact;
  #running: Promise<unknown> = Promise.resolve();
  #next: Promise<Soul | null> | null = null;

  constructor(agent: IdentifiedAgent, sources: readonly IdentitySource[], logger: Logger, now: () => number) {
    this.#agent = agent;
    this.#sources = sources;
    this.#logger = logger.child({ agentId: agent.id });
    this.#now = now;
    this.#fact = { agentId: agent.id, digest: null, tokens: 0, conflicts: 0 };
  }

  fact(): IdentityFact {
    return this.#fact;
  }

  /**
   * Returns the soul as the files are now. A caller during a refresh may know of a newer edit: all
   * such callers share the next refresh.
   */
  soulNow(): Promise<Soul | null> {
    return (this.#next ??= this.#running.then(() => {
      this.#next = null;
      const refreshed = this.#refresh();
      this.#running = refreshed.catch(() => undefined);
      return refreshed;
    }));
  }

  async #refresh(): Promise<Soul | null> {
    const sources = this.#sources;
    const signed = await Promise.all(sources.map((source) => signDocument(source, this.#now())));
    if (isUnchanged(this.#signatures, signed)) return this.#soul;
    const read = await Promise.all(sources.map((source): Promise<ReadDocument> => readDocument(source)));
    this.#signatures = signed;
    this.#update(sources.map((source, index) => ({ source, found: read[index] as ReadDocument })));
    return this.#soul;
  }

  #update(documents: readonly FoundDocument[]): void {
    const found = contentDigest(documents);
    if (found === this.#digest) return;
    this.#digest = found;
    const own = compile(documents);
    const compiled = withDefault(own, this.#agent);
    this.#soul = compiled.packet;
    const changed = documents.filter(
      ({ source, found: { status } }) => this.#statuses.get(source.file) !== status,
    );
    this.#statuses = new Map(documents.map(({ source, found: { status } }) => [source.file, status]));
    const digest = sha256(this.#soul?.text ?? '');
    const conflicts = compiled.conflicts.length;
    this.#fact = { agentId: this.#agent.id, digest, tokens: this.#soul?.tokens ?? 0, conflicts };
    const isDefault = own.packet === null;
    const details = { changed, digest, isDefault };
    reportIdentity(documents, { ...own, packet: this.#soul }, this.#logger, details);
  }
}

/** Nest token of the IdentityStore. */
export const IDENTITY_STORE = Symbol('IDENTITY_STORE');

/**
 * Reads and compiles the documents of each agent (`identity_dir`, `soul_path`), and checks for
 * changes whenever a context is assembled. A missing or unusable document is a warning; no file can
 * make a turn fail.
 */
export const openIdentityStore = async (
  agents: readonly IdentifiedAgent[],
  logger: Logger,
  now: () => number = Date.now,
): Promise<IdentityStore> => {
  const identities = new Map<string, AgentIdentity>();
  for (const agent of agents) {
    const sources = sourcesOf(agent);
    if (sources.length > 0) identities.set(agent.id, new AgentIdentity(agent, sources, logger, now));
  }
  await Promise.all([...identities.values()].map((identity) => identity.soulNow()));
  return {
    soulOf: async (agentId) => (await identities.get(agentId)?.soulNow()) ?? null,
    facts: () => [...identities.values()].map((identity) => identity.fact()),
  };
};
