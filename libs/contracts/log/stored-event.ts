import { z } from 'zod';

/** A workspace is a tenant; its id is safe in a subject, a path and a stream id. */
export const WorkspaceId = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);

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
