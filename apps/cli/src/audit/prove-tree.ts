import { proveFiles, verifyFilesProof } from '@antiphon/audit-features';
import type { ProvedFiles } from '@antiphon/audit-features';
import { invalid } from '@antiphon/kernel';
import { findPublicKeys } from '../connection/signing-keys.js';
import { archiveFolder, withDatabase } from '../connection/stack-locations.js';
import type { CommandContext } from '../output.js';
import { findTrust } from './audit-trust.js';
import { requireKeys, requireRoot } from './prove-event.js';
import type { ProveCommandOptions, VerifyCommandOptions } from './prove-event.js';

/** Returns the text of the proof of a tree after one of its changes. */
export const proveChanges = async (
  context: CommandContext,
  options: ProveCommandOptions,
  eventId: string,
): Promise<string> => {
  if (eventId === '') throw invalid('CLI.USAGE', 'a tree without a change has no proof');
  const { publicKeys, roots } = findTrust(options, context);
  const archives = archiveFolder(options.archives, context);
  return withDatabase(context, { applicationName: 'antiphon-prove', max: 1 }, async (pool) => {
    const wanted = { pool, eventId, publicKeys: requireKeys(publicKeys), roots, archives };
    return `${JSON.stringify(await proveFiles(wanted))}\n`;
  });
};

/** Verifies the proof of a tree with the public key alone. Throws `PROOF.INVALID`. */
export const verifyTree = (
  context: CommandContext,
  text: string,
  options: VerifyCommandOptions,
): ProvedFiles => {
  const proved = verifyFilesProof(text, requireKeys(findPublicKeys(options.key, context)));
  requireRoot(context, proved.proof, options.roots);
  return proved;
};
