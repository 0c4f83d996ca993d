import type { KeyObject } from 'node:crypto';
import type { JsonObject } from '@antiphon/kernel';
import { isSignedByAny, signContent, type SigningKeys } from './signing-key.js';

/** Signature over the report of a program, such as an audit. */
export interface SignedReportProof {
  /** ISO 8601, UTC. */
  readonly signedAt: string;
  readonly keyId: string;
  readonly signature: string;
}

/** Names the kind, so that a signature over a report is none over a root or another report. */
const toContent = (kind: string, report: JsonObject, signedAt: string) => ({
  kind: `antiphon-report-${kind}`,
  report,
  signedAt,
});

export const signReport = (
  kind: string,
  report: JsonObject,
  signedAt: string,
  { privateKey }: SigningKeys,
): SignedReportProof => {
  const { keyId, signature } = signContent(toContent(kind, report, signedAt), privateKey);
  return { signedAt, keyId, signature };
};

/** True if one of the keys signed exactly this report of this kind. */
export const isSignedReport = (
  kind: string,
  report: JsonObject,
  { signedAt, keyId, signature }: SignedReportProof,
  publicKeys: readonly KeyObject[],
): boolean => isSignedByAny({ ...toContent(kind, report, signedAt), keyId, signature }, publicKeys);
