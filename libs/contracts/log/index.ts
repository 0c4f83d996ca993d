import { z } from 'zod';

export { decodeCursor, encodeCursor } from './cursor.js';
export { createUpcast } from './upcast.js';
export type { StoredForm, Upcast, Upcaster } from './upcast.js';

/** A workspace is a tenant; its id is safe in a subject, a path and a stream id. */
export const WorkspaceId = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);
export const DEFAULT_WORKSPACE = 'default';

/** Who appends to a category; a database role for each service enforces it. */
export const CATEGORY_OWNERS = {
  session: 'agent',
  agent: 'agent',
  run: 'agent',
  task: 'agent',
  workflow: 'agent',
  budget: 'metering',
  memory: 'memory',
  plugin: 'sandbox',
  workspace: 'gateway',
  key: 'gateway',
} as const;
export type Category = keyof typeof CATEGORY_OWNERS;
export const CATEGORIES = Object.keys(CATEGORY_OWNERS) as Category[];

/** What every event says about where it came from. Never a secret, never a payload. */
export const EventMetadata = z.object({
  correlationId: z.string().max(200),
  causationId: z.string().max(200).optional(),
  traceparent: z.string().max(100).optional(),
  /** The service that appended it. */
  service: z.string().max(60),
  /** The epoch of the lease under which a driver appended it. */
  epoch: z.int().nonnegative().optional(),
});
export type EventMetadata = z.infer<typeof EventMetadata>;

/** An event as it is read back: the columns of table `events` (contract §6). */
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
  /** Hex SHA-256. */
  hash: z.string(),
});
export type StoredEvent = z.infer<typeof StoredEvent>;

/** `evt.<workspace>.<category>.<streamId>`: where the relay publishes an event. */
export const eventSubject = (event: Pick<StoredEvent, 'workspace' | 'category' | 'streamId'>): string =>
  `evt.${event.workspace}.${event.category}.${event.streamId}`;

/** Where a signed root of the whole log is told, for whoever keeps copies; the message is the root as JSON. */
export const LOG_ROOT_SUBJECT = 'log.root';

/** A plain message after each append that wakes relays and projections; it carries nothing. */
export const LOG_HINT_SUBJECT = 'hint.log';
