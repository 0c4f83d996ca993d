import { z } from 'zod';
import { event } from '../log/stored-event.js';

const KeyId = z.string().max(64);
/** Caller of a request, as `Principal.caller` names it. */
const Caller = z.string().max(200);

/** A workspace was created. The event is in the log of the new workspace. */
export const WorkspaceCreated = event('WorkspaceCreated', {
  workspaceId: z.string(),
  name: z.string(),
  createdBy: Caller,
  createdAt: z.iso.datetime(),
});

/** Signature of the program that ran an audit or a backup, over its report. */
export const ReportProof = z.strictObject({
  signedAt: z.iso.datetime().describe('Time of the signature. A report is recorded within an hour of it.'),
  keyId: z.string().max(64),
  signature: z.string().max(200).describe('Ed25519 over the RFC 8785 text of the report; base64.'),
});
export type ReportProof = z.infer<typeof ReportProof>;

const Proof = ReportProof.optional().describe(
  'Signature of the program that ran it. A report without it is refused; old records lack it.',
);

const AuditFinding = z.strictObject({
  check: z.string().max(200),
  message: z.string().max(4_000),
  workspace: z.string().max(200).nullable(),
  streamId: z.string().max(200).nullable(),
  streamVersion: z.int().nullable(),
  eventId: z.string().max(200).nullable(),
  position: z.int().nullable(),
});

/** Result of `antiphon audit`, as its program reports it. */
export const AuditResult = z.strictObject({
  auditId: z.uuid().describe('Chosen by the client. A repeat with the same id records nothing.'),
  ok: z.boolean().describe('False when a rule is broken.'),
  headPosition: z.int().nonnegative().describe('Position of the newest checked event.'),
  events: z.int().nonnegative().describe('Number of checked events.'),
  since: z
    .int()
    .nonnegative()
    .nullable()
    .describe('Position at which the audit began; null for the whole log.'),
  isLive: z.boolean().describe('True if JetStream, Temporal and folders were compared with the log too.'),
  signing: z.enum(['signed', 'unsigned', 'stale']).nullable(),
  durationMs: z.number().nonnegative(),
  checks: z
    .array(
      z.strictObject({
        name: z.string().max(200),
        about: z.string().max(1_000),
        counts: z.string().max(200),
        checked: z.int().nonnegative(),
        violations: z.int().nonnegative(),
        open: z.int().nonnegative(),
      }),
    )
    .max(200),
  first: AuditFinding.nullable().describe(
    'Violation at the lowest position, unless it is in another workspace than `default`.',
  ),
});
export type AuditResult = z.infer<typeof AuditResult>;

/** An operator recorded the result of an audit. It is in the log of the workspace `default`. */
export const AuditRecorded = event('AuditRecorded', {
  ...AuditResult.shape,
  proof: Proof,
  recordedBy: Caller,
});

/** Result of an audit, with the signature of its program. */
export const SignedAuditResult = AuditResult.extend({ proof: Proof });

/** A copy of the database that `antiphon backup` wrote, as its program reports it. */
export const BackupReport = z.strictObject({
  backupId: z.uuid().describe('Chosen by the client. A repeat with the same id records nothing.'),
  folder: z.string().min(1).max(1_000).describe('Folder on the machine of the command.'),
  position: z.int().nonnegative().describe('Position of the newest event in it.'),
  epoch: z.int().nonnegative(),
  tables: z.int().nonnegative(),
  rows: z.int().nonnegative(),
  archives: z.int().nonnegative().describe('Number of archive files in it.'),
  keyId: z.string().max(200).nullable().describe('Key that signed it; null: a change is not detected.'),
});
export type BackupReport = z.infer<typeof BackupReport>;

/** An operator recorded a backup. It is in the log of the workspace `default`. */
export const BackupRecorded = event('BackupRecorded', {
  ...BackupReport.shape,
  proof: Proof,
  recordedBy: Caller,
});

/** Report of a backup, with the signature of its program. */
export const SignedBackupReport = BackupReport.extend({ proof: Proof });

/** Every event of a `workspace-<id>` stream. */
export const WorkspaceEvent = z.discriminatedUnion('type', [WorkspaceCreated, AuditRecorded, BackupRecorded]);
export type WorkspaceEvent = z.infer<typeof WorkspaceEvent>;

/** An API key was created. No event holds a secret or its hash. */
export const KeyCreated = event('KeyCreated', {
  keyId: KeyId,
  name: z.string(),
  role: z.string(),
  /** Permissions that limit the role, or null for all permissions of the role. */
  scopes: z.array(z.string()).nullable(),
  /** Agent whose credential this is; null for people and programs. */
  agentId: z.string().nullable(),
  expiresAt: z.iso.datetime().nullable(),
  createdBy: Caller,
  createdAt: z.iso.datetime(),
});
/** The key got a new secret. `version` counts its secrets, from 1. */
export const KeyRotated = event('KeyRotated', {
  keyId: KeyId,
  version: z.int().positive(),
  /** Time until which the secret before it stays valid; null if it ended at once. */
  previousValidUntil: z.iso.datetime().nullable(),
  rotatedBy: Caller,
  rotatedAt: z.iso.datetime(),
});
export const KeyRevoked = event('KeyRevoked', {
  keyId: KeyId,
  revokedBy: Caller,
  revokedAt: z.iso.datetime(),
});

/** Every event of a `key-<keyId>` stream. */
export const KeyEvent = z.discriminatedUnion('type', [KeyCreated, KeyRotated, KeyRevoked]);
export type KeyEvent = z.infer<typeof KeyEvent>;

/** Returns the id of a key's event stream. */
export const keyStream = (keyId: string): string => `key-${keyId}`;

/** Returns the id of a workspace's event stream. */
export const workspaceStream = (workspaceId: string): string => `workspace-${workspaceId}`;
