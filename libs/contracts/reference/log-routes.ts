import { z } from 'zod';
import { At, Position } from '../gateway/index.js';
import { BackupRecorded, SignedBackupReport } from '../keys/index.js';
import {
  AfterDeadLetter,
  asOfReply,
  DeadLetterView,
  LogArchives,
  LogRoots,
  ParkedStreamView,
  ProjectionView,
  ReplayOutcome,
  RestoreView,
} from '../log/index.js';
import { PROOF_EXAMPLE } from './examples.js';
import { defineRoute } from './http-route.js';

/** A recorded backup. */
export const RecordedBackup = BackupRecorded.shape.data.extend({
  recordedAt: z.iso.datetime(),
  recordPosition: z.int().positive().describe('Position of the record in the log.'),
});
export type RecordedBackup = z.infer<typeof RecordedBackup>;

const limitOf = (max: number, usual: number) => z.coerce.number().int().min(1).max(max).default(usual);

const ForOperators = z
  .int()
  .nonnegative()
  .nullable()
  .describe('Null for others than operators of `default`.');

const BACKUP = {
  backupId: '0192f0c1-7a2b-7c3d-8e4f-000000000010',
  ...{ folder: '/mnt/backups/2026-11-22', position: 184_203, epoch: 1, tables: 42, rows: 512_340 },
  ...{ archives: 2, keyId: '5f2c9a' },
};
const STREAM = {
  ...{ projection: 'agent-sessions', streamId: 'session-0192f0c1', position: 1_042, tries: 5 },
  ...{ eventId: '0192f0c1-7a2b-7c3d-8e4f-000000000002', type: 'TurnRequested' },
  ...{ reason: 'Error: value too long', parkedAt: '2026-11-22T10:00:00.000Z', retryAt: null },
};
const MESSAGE = {
  ...{ sequence: 3, consumer: 'metering-settle-calls', subject: 'evt.default.session.session-0192f0c1' },
  ...{ eventId: '0192f0c1-7a2b-7c3d-8e4f-000000000003', code: 'DATABASE.ERROR', deliveries: 5 },
  ...{ reason: 'the database refused a row', at: '2026-11-22T10:00:00.000Z' },
};
const NEEDS_OPERATOR = { 403: 'the caller may not do this, or is an agent' };

/** Routes of the state of the log, and of replays of its failed parts. */
export const LOG_ROUTES = {
  listDeadLetters: defineRoute({
    method: 'get',
    path: '/api/v1/dead-letters',
    access: 'events:read',
    tag: 'Log',
    summary: 'List dead letters',
    description:
      'Returns event streams of the workspace that projections stopped at, and messages about its events that consumers ' +
      'gave up, each with its reason. Oldest first. A message that is a request names no workspace: callers of ' +
      '`default` with the permission `operations:write` see it.',
    query: z.strictObject({
      limit: limitOf(500, 100).describe('Maximum of each of the two lists.'),
      after: z.coerce
        .number()
        .int()
        .nonnegative()
        .optional()
        .describe('Only messages after this sequence number: `nextAfter` of the page before.'),
    }),
    reply: {
      schema: z.object({
        streams: z.array(ParkedStreamView),
        messages: z.array(DeadLetterView),
        hasMore: z.boolean().describe('True if one of the lists continues.'),
        nextAfter: AfterDeadLetter,
      }),
    },
    example: { reply: { streams: [STREAM], messages: [MESSAGE], hasMore: false, nextAfter: null } },
    problems: NEEDS_OPERATOR,
  }),
  replayDeadLetters: defineRoute({
    method: 'post',
    path: '/api/v1/dead-letters/replay',
    access: 'operations:write',
    tag: 'Log',
    summary: 'Replay dead letters',
    description:
      'Handles parked event streams, or one message, again: after a fix of their cause. What fails again stays, and is in ' +
      '`failed`. A repeat is safe: a handled dead letter is deleted.',
    body: z.union([
      z.strictObject({
        projection: z.string().min(1).max(100).describe('All parked streams of this projection.'),
        streamId: z.string().min(1).max(300).optional().describe('Only this event stream.'),
      }),
      z.strictObject({ sequence: z.int().positive().describe('One message.') }),
    ]),
    reply: { schema: ReplayOutcome },
    example: { body: { projection: 'agent-sessions' }, reply: { replayed: 1, failed: [] } },
    problems: {
      ...NEEDS_OPERATOR,
      404: '`LOG.DEAD_LETTER_NOT_FOUND`, `LOG.PROJECTION_NOT_FOUND`: there is no such message or projection',
      422: '`LOG.DEAD_LETTER_OF_REQUEST`: only `antiphon dlq replay` sends a request again',
    },
  }),
  listProjections: defineRoute({
    method: 'get',
    path: '/api/v1/projections',
    access: 'events:read',
    tag: 'Log',
    summary: 'List projections',
    description:
      'Returns every projection that follows the log, with its position and its lag in events. These count the events ' +
      'of every workspace: only operators of `default` see them, and others get null.',
    reply: {
      schema: z.object({
        head: ForOperators,
        projections: z.array(ProjectionView.extend({ position: ForOperators, lag: ForOperators })),
      }),
    },
    example: {
      reply: {
        head: 184_203,
        projections: [
          {
            ...{ name: 'agent-sessions', service: 'agent', position: 184_203, lag: 0, parked: 0 },
            ...{ movedAt: '2026-11-22T10:00:00.000Z', stale: false },
          },
        ],
      },
    },
    problems: NEEDS_OPERATOR,
  }),
  listRoots: defineRoute({
    method: 'get',
    path: '/api/v1/roots',
    access: 'events:read',
    tag: 'Log',
    summary: 'List signed roots',
    description:
      'Returns signed roots of the log, newest first. Operators of `default` also see the number of events that none ' +
      'covers yet, the time of the next root, and the reason of a refusal.',
    query: z.strictObject({ limit: limitOf(1_000, 20) }),
    reply: { schema: LogRoots.extend({ head: ForOperators, uncovered: ForOperators }) },
    example: {
      reply: {
        ...{ signs: true, refusal: null, head: 184_203, position: 184_100, uncovered: 103 },
        ...{ everySeconds: 600, nextAt: '2026-11-22T10:10:00.000Z' },
        roots: [
          {
            ...{ number: 9, kind: 'root', epoch: 1, position: 184_100, root: '5f2c…', keyId: '5f2c9a' },
            at: '2026-11-22T10:00:00.000Z',
          },
        ],
      },
    },
  }),
  listArchives: defineRoute({
    method: 'get',
    path: '/api/v1/archives',
    access: 'events:read',
    tag: 'Log',
    summary: 'List archives',
    description:
      'Returns the files of events that left the log, newest first. Each file is compared with its SHA-256. Archives hold ' +
      'events of every workspace, so only the workspace `default` sees them.',
    query: z.strictObject({ limit: limitOf(100, 50) }),
    reply: { schema: LogArchives },
    example: {
      reply: {
        folder: '/srv/antiphon/archives',
        archives: [
          {
            ...{ archiveId: '0192f0c1-7a2b-7c3d-8e4f-000000000011', file: 'events-000000100000.jsonl.gz' },
            ...{ cutPosition: 100_000, streams: 512, events: 98_210, archivedAt: '2026-11-22T03:00:00.000Z' },
            ...{ sha256: '5f2c…', bytes: 8_123_456, state: 'intact' },
            checkedAt: '2026-11-22T10:00:00.000Z',
          },
        ],
        requests: [],
      },
    },
    problems: NEEDS_OPERATOR,
  }),
  listBackups: defineRoute({
    method: 'get',
    path: '/api/v1/backups',
    access: 'events:read',
    tag: 'Log',
    summary: 'List backups',
    description:
      'Returns recorded backups, newest first, and restores of this database. `antiphon backup` records one with `--record`: ' +
      'others are not known here. Only the workspace `default` sees them.',
    query: z.strictObject({ limit: limitOf(50, 10), at: At }),
    reply: {
      schema: z.object({
        backups: z.array(RecordedBackup),
        restores: z.array(RestoreView).describe('Restores are no facts: they are the current ones.'),
        position: asOfReply.position,
        head: Position.describe('Position of the newest event: a restore loses those after a backup.'),
      }),
    },
    example: {
      reply: {
        backups: [
          {
            ...BACKUP,
            ...{ recordedBy: 'local', recordedAt: '2026-11-22T10:00:00.000Z', recordPosition: 184_204 },
          },
        ],
        ...{ restores: [], head: 184_204 },
      },
    },
    problems: NEEDS_OPERATOR,
  }),
  recordBackup: defineRoute({
    method: 'post',
    path: '/api/v1/backups',
    access: 'operations:write',
    tag: 'Log',
    summary: 'Record a backup',
    description:
      'Records a backup as a fact, with the caller that reports it. `antiphon backup --record` signs and sends it. A report ' +
      'that no trusted key signed is refused. The same backup again records nothing.',
    body: SignedBackupReport,
    reply: { schema: z.object({ recorded: z.literal(true) }), status: 201 },
    example: { body: { ...BACKUP, proof: PROOF_EXAMPLE }, reply: { recorded: true } },
    problems: {
      403: '`BACKUP.OTHER_WORKSPACE`: only callers of the workspace `default` record backups',
      422: '`BACKUP.REPORT_UNSIGNED`, `BACKUP.OUTDATED`: no trusted key signed it, or it is over an hour old',
      409: '`LOG.EVENT_ID_CONFLICT`: another backup has this id',
    },
  }),
} as const;
