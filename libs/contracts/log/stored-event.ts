import { z } from 'zod';
import type { Cause as CauseOfFact } from './causes.js';

/**
 * Id of a workspace, the tenant of this system. It is safe in a subject, a path and a stream id.
 */
export const WorkspaceId = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);

/** Workspace of every client until API keys assign others. */
export const DEFAULT_WORKSPACE = 'default';

/** Service that appends to each category. The database roles enforce it. */
export const CATEGORY_OWNERS = {
  session: 'agent',
  agent: 'agent',
  run: 'agent',
  task: 'agent',
  file: 'agent',
  chat: 'agent',
  plan: 'agent',
  provider: 'agent',
  channel: 'agent',
  workflow: 'agent',
  budget: 'metering',
  memory: 'memory',
  plugin: 'sandbox',
  workspace: 'gateway',
  key: 'gateway',
} as const;
export type Category = keyof typeof CATEGORY_OWNERS;
export const CATEGORIES = Object.keys(CATEGORY_OWNERS) as Category[];

/** Creates the contract of an event type in its first schema version. */
export const event = <T extends string, S extends z.ZodRawShape>(type: T, data: S) =>
  z.object({ type: z.literal(type), schemaVersion: z.literal(1), data: z.object(data) });

/** Creates the contract of an event type whose second version has a cause in place of a text. */
export const eventOfCause = <T extends string, S extends z.ZodRawShape>(type: T, data: S) =>
  z.object({ type: z.literal(type), schemaVersion: z.literal(2), data: z.object(data) });

const Field = z.union([z.string(), z.number(), z.null()]);
/** Fields of a cause that is a field of another cause. */
const Nested: z.ZodType = z.lazy(() => z.record(z.string(), z.union([Field, Nested])));
/**
 * Kind of a cause with its fields. A field may be a cause itself. Kinds of newer versions are
 * kept.
 */
export const Cause: z.ZodType<CauseOfFact> = z
  .object({ kind: z.string() })
  .catchall(z.union([Field, Nested])) as unknown as z.ZodType<CauseOfFact>;

/** Origin of an event. It never holds a secret or a payload. */
export const EventMetadata = z.object({
  correlationId: z.string().max(200),
  causationId: z.string().max(200).optional(),
  traceparent: z.string().max(100).optional(),
  /** Service that appended the event. */
  service: z.string().max(60),
  /** Epoch of the lease under which the session's driver appended it. */
  epoch: z.int().nonnegative().optional(),
});
export type EventMetadata = z.infer<typeof EventMetadata>;

/** An event as it is read back: the columns of the table `events`. */
export const StoredEvent = z.object({
  position: z.int().positive(),
  workspace: z.string(),
  category: z.string(),
  streamId: z.string(),
  streamVersion: z.int().positive(),
  eventId: z.uuid(),
  type: z.string(),
  schemaVersion: z.int().positive(),
  data: z.record(z.string(), z.json()),
  metadata: EventMetadata.loose(),
  recordedAt: z.iso.datetime(),
  /** SHA-256, hex. */
  hash: z.string(),
});
export type StoredEvent = z.infer<typeof StoredEvent>;

/**
 * Returns the subject on which the relay publishes an event:
 * `evt.<workspace>.<category>.<streamId>`.
 */
export const eventSubject = ({
  workspace,
  category,
  streamId,
}: Pick<StoredEvent, 'workspace' | 'category' | 'streamId'>): string =>
  `evt.${workspace}.${category}.${streamId}`;

/**
 * Subject of the signed roots of the whole log, for copies outside. A message is one root as JSON.
 */
export const LOG_ROOT_SUBJECT = 'log.root';

/** Subject of the empty message that wakes relays and projections after each append. */
export const LOG_NOTIFICATION_SUBJECT = 'hint.log';

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/**
 * First line of an exported session. It describes the lines that follow and where the hash chain
 * ends.
 */
export const SessionExportHeader = z.object({
  kind: z.literal('antiphon.session'),
  /** Version of the export format. A reader refuses a later one. */
  format: z.literal(1),
  workspace: WorkspaceId,
  sessionId: z.uuid(),
  /** Last event of the export: its stream version, which is the number of events, and its hash. */
  head: z.object({ version: z.int().positive(), hash: Sha256 }),
});
export type SessionExportHeader = z.infer<typeof SessionExportHeader>;

/** An exported session as one document. As JSON lines: the header, then one event a line. */
export const SessionExport = SessionExportHeader.extend({
  /** An event that is `withheld` lacks texts of a deleted message: its content lacks its hash. */
  events: z.array(StoredEvent.extend({ withheld: z.literal('deleted').optional() })),
});
export type SessionExport = z.infer<typeof SessionExport>;

export const ExportFormat = z.enum(['jsonl', 'json']);
export type ExportFormat = z.infer<typeof ExportFormat>;
