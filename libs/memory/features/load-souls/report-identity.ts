import type { CompiledIdentity, IdentityFile } from '@antiphon/memory-domain';
import type { Logger } from '@antiphon/observability';
import type { IdentitySource } from './identity-sources.js';
import type { ReadDocument } from './read-document.js';

export interface FoundDocument {
  readonly source: IdentitySource;
  readonly found: ReadDocument;
}

const reportFiles = (documents: readonly FoundDocument[], logger: Logger, isDefault: boolean): void => {
  const missing = documents.filter(({ found }) => found.status === 'missing');
  if (missing.length > 0) {
    const paths = missing.map(({ source }) => source.path);
    const rest = isDefault ? 'it goes by its name alone' : 'it goes without them';
    logger.warn({ missing: paths }, `identity documents of an agent do not exist; ${rest}`);
  }
  for (const { source, found } of documents)
    if (found.status === 'unusable')
      logger.warn({ path: source.path, reason: found.reason }, 'an identity document is left out');
};

export interface ReportDetails {
  /** Documents that were not as they are when this was last reported: what is missing is said once, not at each edit. */
  readonly news: readonly FoundDocument[];
  readonly digest: string;
  /** There is no usable document: the agent goes by its name. */
  readonly isDefault: boolean;
}

/** Puts what an operator should know of an agent's identity into the log: each conflict is one line. */
export const reportIdentity = (
  documents: readonly FoundDocument[],
  { packet, conflicts, clipped, problems }: CompiledIdentity,
  logger: Logger,
  { news, digest, isDefault }: ReportDetails,
): void => {
  reportFiles(news, logger, isDefault);
  const pathOf = (file: IdentityFile): string =>
    documents.find(({ source }) => source.file === file)?.source.path ?? file;
  for (const { file, problem } of problems)
    logger.warn({ path: pathOf(file), problem }, 'an identity document is odd');
  for (const conflict of conflicts)
    logger.warn({ ...conflict }, 'identity documents disagree; the one with precedence is kept');
  for (const { file, ...tokens } of clipped)
    logger.warn({ path: pathOf(file), ...tokens }, 'an identity document is too long and is clipped');
  const about = { digest, tokens: packet?.tokens ?? 0, conflicts: conflicts.length };
  logger.info(about, 'the identity of an agent is compiled');
};
