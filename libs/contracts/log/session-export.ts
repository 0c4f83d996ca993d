import { z } from 'zod';
import { StoredEvent, WorkspaceId } from './stored-event.js';

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** The first line of an exported session: what the lines after it are, and where its chain ends. */
export const SessionExportHeader = z.object({
  kind: z.literal('antiphon.session'),
  /** Of this form; a reader refuses a later one. */
  format: z.literal(1),
  workspace: WorkspaceId,
  sessionId: z.uuid(),
  /** The last event of the export: its version in the stream, which is the number of events, and its hash. */
  head: z.object({ version: z.int().positive(), hash: Sha256 }),
});
export type SessionExportHeader = z.infer<typeof SessionExportHeader>;

/** An exported session as one document. As JSON lines: the header, then each event on a line of its own. */
export const SessionExport = SessionExportHeader.extend({ events: z.array(StoredEvent) });
export type SessionExport = z.infer<typeof SessionExport>;

export const ExportFormat = z.enum(['jsonl', 'json']);
export type ExportFormat = z.infer<typeof ExportFormat>;
