import type { KeyObject } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ReportKind } from '@antiphon/contracts/log';
import { decodeKeyText, parseSigningKeys, readPublicKeys, signReport } from '@antiphon/event-store';
import type { SignedReportProof, SigningKeys } from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import type { CommandContext } from '../output.js';
import { homeOf } from './gateway-address.js';

type Location = Pick<CommandContext, 'env' | 'cwd'>;

/** Text of a key, and its place for messages. */
interface KeyText {
  readonly name: string;
  readonly pem: string;
}

const readFile = (name: string): KeyText => {
  try {
    return { name, pem: readFileSync(name, 'utf8') };
  } catch (cause) {
    throw invalid('CLI.USAGE', `the key ${name} cannot be read: ${(cause as Error).message}`, { cause });
  }
};

/**
 * Finds the key: the named file, `ANTIPHON_LOG_SIGNING_KEY`, the file of
 * `ANTIPHON_LOG_SIGNING_KEY_FILE`, else that of this home. Returns null if the last does not exist.
 */
const findKeyText = (file: string | undefined, { env, cwd }: Location): KeyText | null => {
  if (file !== undefined) return readFile(file);
  const text = env['ANTIPHON_LOG_SIGNING_KEY'];
  if (text) return { name: 'ANTIPHON_LOG_SIGNING_KEY', pem: decodeKeyText(text) };
  const named =
    env['ANTIPHON_LOG_SIGNING_KEY_FILE'] || join(homeOf(env, cwd), 'credentials', 'log-signing.key');
  return existsSync(named) ? readFile(named) : null;
};

const parse = <T>({ name, pem }: KeyText, parseKey: (pem: string, name: string) => T): T => {
  try {
    return parseKey(pem, name);
  } catch {
    throw invalid('CLI.USAGE', `the key ${name} is not an Ed25519 key in PEM`);
  }
};

/** Returns the public keys whose signatures are trusted; none if no key is found. */
export const findPublicKeys = (file: string | undefined, location: Location): readonly KeyObject[] => {
  const text = findKeyText(file, location);
  return text === null || text.pem.trim() === '' ? [] : parse(text, readPublicKeys);
};

/** Returns the key that signs; null if no key is found, or only a public one. */
export const findSigningKeys = (file: string | undefined, location: Location): SigningKeys | null => {
  const text = findKeyText(file, location);
  return text?.pem.includes('PRIVATE KEY') === true ? parse(text, parseSigningKeys) : null;
};

/** Signs the report of an audit or a backup, and returns it with its signature. */
export type SignReport = <T extends object>(report: T) => T & { readonly proof: SignedReportProof };

/**
 * Returns the signer of reports: with the key of `ANTIPHON_REPORT_SIGNING_KEY`, else with the one
 * that signs the log. Throws `CLI.USAGE` without a private key.
 */
export const findReportSigner = (
  kind: ReportKind,
  file: string | undefined,
  location: Location,
): SignReport => {
  const text = location.env['ANTIPHON_REPORT_SIGNING_KEY'];
  const keys = text
    ? parse({ name: 'ANTIPHON_REPORT_SIGNING_KEY', pem: decodeKeyText(text) }, parseSigningKeys)
    : findSigningKeys(file, location);
  if (keys === null)
    throw invalid(
      'CLI.USAGE',
      'a recorded report is signed, and no private key was found. What to do: set ANTIPHON_REPORT_SIGNING_KEY, or omit --record',
    );
  return (report) => ({
    ...report,
    proof: signReport(kind, report as unknown as JsonObject, new Date().toISOString(), keys),
  });
};
