import { z } from 'zod';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { FileDigest } from './file-events.js';
import { Caller, IdempotencyKey } from './requests.js';

const Version = z.int().nonnegative();

/** A file that a rewind changed, or would change. */
export const RewoundFile = z.object({
  path: z.string(),
  change: z.enum(['restored', 'deleted']),
  digest: FileDigest.nullable().describe('Digest after the rewind; null if the file is gone.'),
  before: FileDigest.nullable().describe('Digest before the rewind; null if there was no file.'),
});

/** A path that keeps a newer change of another, or that cannot be restored. */
export const RewindConflictView = z.object({
  path: z.string(),
  reason: z.enum(['newer_change', 'refused']),
  detail: z.string().describe('Code of the refusal; else the actor of the newer change.'),
  version: Version.nullable().describe('Version of the tree that has the newer change.'),
  sessionId: z.uuid().nullable().describe('Session of the newer change.'),
});

/**
 * Takes back a session's changes of files after one of its events. Each path gets the content of
 * the newest change that is not the session's. Newer changes of others stay and are listed. The
 * rewind is a change of the session, so that a later one takes it back. Errors:
 * `SESSION.NOT_FOUND`, `SESSION.NO_SUCH_VERSION`.
 */
export const rewindFiles = defineRequest({
  subject: 'cmd.agent.file.rewind',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionId: z.uuid(),
    /** Version of the session's event stream; 0 takes back everything. */
    at: Version,
    dryRun: z.boolean().default(false),
    actor: Caller,
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: z.object({
    version: Version.describe('Version of the tree after the rewind.'),
    files: z.array(RewoundFile),
    conflicts: z.array(RewindConflictView),
  }),
  timeoutMs: 30_000,
});
