import type { ReportProof } from '@antiphon/contracts/keys';
import { verifyReport } from '@antiphon/contracts/log';
import type { ReportKind } from '@antiphon/contracts/log';
import { rejected, type Clock, type JsonObject } from '@antiphon/kernel';
import type { z } from 'zod';
import type { GatewayRequests } from '../gateway.ports.js';

/** Maximum age of a signature: an old report must not be recorded as the newest. */
const MAX_AGE_MS = 60 * 60_000;
/** Maximum time by which the clock of the program that signed may be ahead. */
const MAX_SKEW_MS = 5 * 60_000;

const CODES = {
  audit: { unsigned: 'AUDIT.UNSIGNED', outdated: 'AUDIT.OUTDATED' },
  backup: { unsigned: 'BACKUP.REPORT_UNSIGNED', outdated: 'BACKUP.OUTDATED' },
} as const;

type RequestedReport = z.input<typeof verifyReport.request>['report'];
type Report = JsonObject & { readonly proof?: ReportProof | undefined };

/**
 * Verifies that a trusted key signed the report of an audit or a backup: a report is no evidence
 * because its sender says so. Throws `AUDIT.UNSIGNED`, `AUDIT.OUTDATED` and their like for backups.
 */
export const requireSignedReport = async (
  { requests, clock }: { readonly requests: GatewayRequests; readonly clock: Clock },
  kind: ReportKind,
  { proof, ...report }: Report,
): Promise<void> => {
  const { unsigned, outdated } = CODES[kind];
  const remedy = `run \`antiphon ${kind}${kind === 'backup' ? ' FOLDER' : ''} --record\` with the key that signs the log or one for reports (docs/operations.md)`;
  if (proof === undefined)
    throw rejected(unsigned, `a report that its program did not sign is not recorded: ${remedy}`);
  const age = clock.now() - Date.parse(proof.signedAt);
  if (age > MAX_AGE_MS || age < -MAX_SKEW_MS)
    throw rejected(
      outdated,
      `the report was signed at ${proof.signedAt}, not within the last hour: ${remedy}`,
    );
  const body = { kind, report: report as RequestedReport, ...proof };
  const { isValid, hasKeys } = await requests.request(verifyReport, body);
  if (isValid) return;
  const reason = hasKeys ? 'no trusted key signed this report' : 'no key that verifies reports is configured';
  throw rejected(unsigned, `${reason}: ${remedy}`);
};
