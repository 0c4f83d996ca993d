import { z } from 'zod';
import { defineRequest } from '../messaging/index.js';
import { WorkspaceId } from './stored-event.js';

/** An event stream that a projection stopped at, because one of its events failed. */
export const ParkedStreamView = z.object({
  projection: z.string(),
  streamId: z.string(),
  position: z.int().positive().describe('Position of the event that failed.'),
  eventId: z.string().nullable().describe('Null once the event is archived, as is `type`.'),
  type: z.string().nullable(),
  reason: z.string().describe('Error of the last attempt.'),
  tries: z.int().positive(),
  parkedAt: z.iso.datetime(),
  retryAt: z.iso
    .datetime()
    .nullable()
    .describe('Time of the next attempt; null when it waits for a replay by an operator.'),
});
export type ParkedStreamView = z.infer<typeof ParkedStreamView>;

/** A message that a consumer gave up. */
export const DeadLetterView = z.object({
  sequence: z.int().positive(),
  consumer: z.string(),
  subject: z.string(),
  eventId: z.string().nullable().describe('Event of the log that the message carried, if it did.'),
  code: z.string(),
  reason: z.string(),
  deliveries: z.int().nonnegative(),
  at: z.iso.datetime(),
});
export type DeadLetterView = z.infer<typeof DeadLetterView>;

/** Outcome of a replay of parked streams. */
export const ReplayOutcome = z.object({
  replayed: z.int().nonnegative(),
  failed: z
    .array(z.object({ projection: z.string(), streamId: z.string(), reason: z.string() }))
    .describe('Streams that stay parked.'),
});
export type ReplayOutcome = z.infer<typeof ReplayOutcome>;

const Limit = z.int().min(1).max(500);

/** Lists the parked streams of a workspace, by projection and position. */
export const listParkedStreams = defineRequest({
  subject: 'cmd.memory.log.parked',
  request: z.strictObject({ workspace: WorkspaceId, limit: Limit }),
  reply: z.object({ streams: z.array(ParkedStreamView), hasMore: z.boolean() }),
  timeoutMs: 5_000,
});

/** Services that run projections, each of which replays its own parked streams. */
export const PROJECTION_SERVICES = ['agent', 'memory'] as const;
export type ProjectionService = (typeof PROJECTION_SERVICES)[number];

/** Returns the request that handles parked streams of a workspace again in their service. */
export const replayParkedContract = <S extends ProjectionService>(service: S) =>
  defineRequest({
    subject: `cmd.${service}.projection.replay`,
    request: z.strictObject({
      workspace: WorkspaceId,
      projection: z.string().max(100).optional(),
      streamId: z.string().max(300).optional(),
    }),
    reply: ReplayOutcome,
    timeoutMs: 30_000,
  });

/** Sequence number of a dead letter after which a page continues. */
export const AfterDeadLetter = z
  .int()
  .positive()
  .nullable()
  .describe(
    '`after` of the next page of messages; null on the last one. A page may be empty and not the last.',
  );

/**
 * Lists the dead letters of a workspace, oldest first. Those of requests name no workspace: with
 * `includesRequests` they are in the list of `default`.
 */
export const listDeadLetters = defineRequest({
  subject: 'cmd.metering.dead-letter.list',
  request: z.strictObject({
    workspace: WorkspaceId,
    limit: Limit,
    after: z.int().nonnegative().default(0),
    includesRequests: z.boolean().default(false),
  }),
  reply: z.object({ messages: z.array(DeadLetterView), nextAfter: AfterDeadLetter }),
  timeoutMs: 10_000,
});

/**
 * Handles a dead letter of a workspace again, and deletes it on success. Rejects with
 * `LOG.DEAD_LETTER_NOT_FOUND`, or with the error of its handler.
 */
export const replayDeadLetter = defineRequest({
  subject: 'cmd.metering.dead-letter.replay',
  request: z.strictObject({ workspace: WorkspaceId, sequence: z.int().positive() }),
  reply: z.object({ replayed: z.literal(true) }),
  timeoutMs: 35_000,
});

/** Progress of a projection. */
export const ProjectionView = z.object({
  name: z.string(),
  service: z.string(),
  position: z.int().nonnegative().describe('Position of the last event that its rows contain.'),
  lag: z.int().nonnegative().describe('Number of events in the log after its position.'),
  parked: z.int().nonnegative().describe('Number of parked event streams of the workspace.'),
  movedAt: z.iso.datetime().nullable(),
  stale: z.boolean().describe('True if the log was restored since: the projection must be rebuilt.'),
});
export type ProjectionView = z.infer<typeof ProjectionView>;

export const listLogProjections = defineRequest({
  subject: 'cmd.memory.log.projections',
  request: z.strictObject({ workspace: WorkspaceId }),
  reply: z.object({ head: z.int().nonnegative(), projections: z.array(ProjectionView) }),
  timeoutMs: 5_000,
});

/** A signed root of the log. */
export const LogRootView = z.object({
  number: z.int().positive(),
  kind: z
    .string()
    .describe('`root`; `epoch` for the record of a restore, `adoption` for one of an operator.'),
  epoch: z.int().nonnegative(),
  position: z.int().nonnegative().describe('The root covers every event up to this position.'),
  root: z.string().describe('Merkle tree head (RFC 6962), hex.'),
  keyId: z.string(),
  at: z.iso.datetime(),
});
export type LogRootView = z.infer<typeof LogRootView>;

/** Signed roots, newest first, and how much of the log they do not cover yet. */
export const LogRoots = z.object({
  signs: z.boolean().describe('False where no process signs the log.'),
  refusal: z
    .string()
    .nullable()
    .describe('Reason for which the process that answers refuses to sign the log.'),
  head: z.int().nonnegative(),
  position: z.int().nonnegative().nullable().describe('Position of the newest root; null without one.'),
  uncovered: z.int().nonnegative().describe('Number of events after the newest root.'),
  everySeconds: z.number().positive().describe('Interval between roots while events are appended.'),
  nextAt: z.iso.datetime().nullable().describe('Time of the next root; null if none is due.'),
  roots: z.array(LogRootView),
});
export type LogRoots = z.infer<typeof LogRoots>;

export const readLogRoots = defineRequest({
  subject: 'cmd.memory.log.roots',
  request: z.strictObject({ limit: z.int().min(1).max(1_000) }),
  reply: LogRoots,
  timeoutMs: 5_000,
});

/** Programs whose reports are recorded as facts. */
export const REPORT_KINDS = ['audit', 'backup'] as const;
export type ReportKind = (typeof REPORT_KINDS)[number];

/**
 * Verifies that a trusted key signed a report: that of the log, or one for reports. `hasKeys` of
 * the reply is false where no key is configured.
 */
export const verifyReport = defineRequest({
  subject: 'cmd.memory.log.verify',
  request: z.strictObject({
    kind: z.enum(REPORT_KINDS),
    report: z.record(z.string(), z.json()).describe('The report without its signature.'),
    signedAt: z.iso.datetime(),
    keyId: z.string().max(64),
    signature: z.string().max(200),
  }),
  reply: z.object({ isValid: z.boolean(), hasKeys: z.boolean() }),
  timeoutMs: 5_000,
});

/** A file of events that left the log. */
export const ArchiveView = z.object({
  archiveId: z.uuid(),
  file: z.string().describe('Name in the folder of archive files.'),
  cutPosition: z.int().positive().describe('Its events are at or before this position of the log.'),
  streams: z.int().nonnegative(),
  events: z.int().nonnegative(),
  archivedAt: z.iso
    .datetime()
    .describe('Time at which its events left the log, after they were compared with the file.'),
  sha256: z.string(),
  bytes: z.int().nonnegative().nullable().describe('Size of the file; null where it cannot be read.'),
  state: z
    .enum(['intact', 'changed', 'missing', 'unknown'])
    .describe('Comparison of the file with its SHA-256. `unknown`: this stack has no folder.'),
  checkedAt: z.iso
    .datetime()
    .nullable()
    .describe('Time of the comparison, at most 10 minutes ago; null if `state` is `unknown`.'),
});
export type ArchiveView = z.infer<typeof ArchiveView>;

/** Archives whose events are not in the log, newest first, and requests that are not settled. */
export const LogArchives = z.object({
  folder: z.string().nullable().describe('Folder of the files on the machine of the memory service.'),
  archives: z.array(ArchiveView),
  requests: z
    .array(
      z.object({
        archiveId: z.uuid(),
        file: z.string(),
        cutPosition: z.int().positive(),
        refusal: z.string().nullable().describe('Reason of the archiver; null while the request waits.'),
      }),
    )
    .describe('Files whose events are still in the log.'),
});
export type LogArchives = z.infer<typeof LogArchives>;

export const listLogArchives = defineRequest({
  subject: 'cmd.memory.log.archives',
  request: z.strictObject({ limit: z.int().min(1).max(100) }),
  reply: LogArchives,
  timeoutMs: 30_000,
});

/** A restore of the database from a backup. */
export const RestoreView = z.object({
  id: z.uuid(),
  phase: z.enum(['building', 'filled', 'finished', 'undone']),
  folder: z.string(),
  beganAt: z.iso.datetime(),
});
export type RestoreView = z.infer<typeof RestoreView>;

export const listRestores = defineRequest({
  subject: 'cmd.memory.log.restores',
  request: z.strictObject({}),
  reply: z.object({ restores: z.array(RestoreView) }),
  timeoutMs: 5_000,
});
