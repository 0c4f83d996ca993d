import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { proveEvent } from '@antiphon/audit-features';
import { parseRootLines, renderProof, verifyProof } from '@antiphon/event-store';
import type { EventProof } from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import { findPublicKeys } from '../connection/signing-keys.js';
import { archiveFolder, withDatabase } from '../connection/stack-locations.js';
import type { CommandContext } from '../output.js';
import { findTrust } from './audit-trust.js';

export interface ProveCommandOptions {
  readonly out?: string;
  readonly roots?: string;
  readonly key?: string;
  readonly archives?: string;
}

export interface VerifyCommandOptions {
  readonly key?: string;
  readonly roots?: string;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const readText = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw invalid('CLI.USAGE', `${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
};

/** Throws `CLI.USAGE` without a key. */
export const requireKeys = <T>(keys: readonly T[]): readonly T[] => {
  if (keys.length > 0) return keys;
  throw invalid('CLI.USAGE', 'no key was found. What to do: name the public key with --key');
};

const describe = ({ event, root }: EventProof): string =>
  `event ${event.eventId} (${event.type}, ${event.streamId}@${event.streamVersion}) is at position ${event.position} of the log, recorded at ${event.recordedAt}\nsigned up to position ${root.position} at ${root.at} with the key ${root.keyId}`;

/** Writes the proof of an event to a file. */
export const runProve = async (
  context: CommandContext,
  eventId: string,
  options: ProveCommandOptions,
): Promise<void> => {
  if (!UUID.test(eventId)) throw invalid('CLI.USAGE', `${eventId} is not the id of an event`);
  const { publicKeys, roots } = findTrust(options, context);
  const archives = archiveFolder(options.archives, context);
  const file = resolve(context.cwd, options.out ?? `${eventId.toLowerCase()}.proof.json`);
  await withDatabase(context, { applicationName: 'antiphon-prove', max: 1 }, async (pool) => {
    const proof = await proveEvent({ pool, eventId, publicKeys: requireKeys(publicKeys), roots, archives });
    writeFileSync(file, renderProof(proof), { mode: 0o600 });
    context.output.result({ file, event: proof.event, root: proof.root }, `${file}\n${describe(proof)}`);
  });
};

/** Throws `PROOF.INVALID` unless a copy of the roots, if one is named, contains that of the proof. */
export const requireRoot = (
  context: CommandContext,
  { root }: EventProof,
  file: string | undefined,
): void => {
  if (file === undefined) return;
  const { roots } = parseRootLines(readText(resolve(context.cwd, file)));
  if (!roots.some(({ signature }) => signature === root.signature))
    throw invalid('PROOF.INVALID', `the proof does not hold: its root is not in ${file}`);
};

/** Verifies a proof with the public key alone. With a copy of the roots, its root must be in it. */
export const runVerify = (context: CommandContext, file: string, options: VerifyCommandOptions): void => {
  const keys = requireKeys(findPublicKeys(options.key, context));
  const proof = verifyProof(readText(resolve(context.cwd, file)), keys);
  requireRoot(context, proof, options.roots);
  context.output.result(
    { ok: true, event: proof.event, root: proof.root },
    `${describe(proof)}\nthe proof holds`,
  );
};
