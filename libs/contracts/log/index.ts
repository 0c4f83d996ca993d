import type { StoredEvent } from './stored-event.js';

export { decodeCursor, encodeCursor, epochOfCursor } from './cursor.js';
export { createUpcast } from './upcast.js';
export type { StoredForm, Upcast, Upcaster } from './upcast.js';
export { ExportFormat, SessionExport, SessionExportHeader } from './session-export.js';
export { EventMetadata, StoredEvent, WorkspaceId } from './stored-event.js';

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

/** `evt.<workspace>.<category>.<streamId>`: where the relay publishes an event. */
export const eventSubject = (event: Pick<StoredEvent, 'workspace' | 'category' | 'streamId'>): string =>
  `evt.${event.workspace}.${event.category}.${event.streamId}`;

/** Where a signed root of the whole log is told, for whoever keeps copies; the message is the root as JSON. */
export const LOG_ROOT_SUBJECT = 'log.root';

/** A plain message after each append that wakes relays and projections; it carries nothing. */
export const LOG_NOTIFICATION_SUBJECT = 'hint.log';
