import { DELETED_FIELDS, withoutDeletedTexts, type SessionHistory } from '@antiphon/contracts/agent';
import type { WorkspaceQueries } from '@antiphon/database';

/** A part of a turn that a person deleted. */
export type DeletedPart = SessionHistory['deleted'][number];

/** As `DeletedPart`, with the time of its deletion. */
interface DatedPart extends DeletedPart {
  readonly at: string;
}

const DELETED_SQL = `select stream_id, data ->> 'turnId' as turn_id, data ->> 'part' as part, data ->> 'at' as at from events
  where workspace = $1 and stream_id = any ($2) and type = 'ChatMessageDeleted'`;

interface DeletedRow {
  readonly stream_id: string;
  readonly turn_id: string;
  readonly part: DeletedPart['part'];
  readonly at: string;
}

/** Deleted parts by event stream. */
export type DeletedParts = ReadonlyMap<string, readonly DatedPart[]>;

/** Reads the parts of sessions that were deleted at any time. Streams of no session cost no query. */
export const readDeletedParts = async (
  db: WorkspaceQueries,
  workspace: string,
  streams: Iterable<string>,
): Promise<DeletedParts> => {
  const sessions = [...new Set(streams)].filter((stream) => stream.startsWith('session-'));
  if (sessions.length === 0) return new Map();
  const { rows } = await db.query<DeletedRow>(DELETED_SQL, [workspace, sessions]);
  const parts = new Map<string, DatedPart[]>();
  for (const { stream_id: stream, turn_id: turnId, part, at } of rows)
    parts.set(stream, [...(parts.get(stream) ?? []), { turnId, part, at }]);
  return parts;
};

/** The part of an event that holds texts. */
interface EventWithTexts {
  readonly type: string;
  readonly data: unknown;
}

type Data = Parameters<typeof withoutDeletedTexts>[1];

/** Returns an event without the texts of deleted parts, marked as such, or the event as it is. */
export const hideDeletedTexts = <E extends EventWithTexts>(
  event: E,
  deleted: readonly DeletedPart[] = [],
): E => {
  const turnId = (event.data as { turnId?: unknown } | null)?.turnId;
  const own = deleted.filter((part) => part.turnId === turnId && hasTexts(event, part));
  if (own.length === 0) return event;
  return { ...event, data: withoutDeletedTexts(event.type, event.data as Data, own), withheld: 'deleted' };
};

const hasTexts = ({ type, data }: EventWithTexts, { part }: DeletedPart): boolean =>
  Object.hasOwn(DELETED_FIELDS[part], type) &&
  (type !== 'ChatMessageEdited' || (data as { part?: unknown }).part === part);

/** Event types with texts of a deleted message, and of a deleted answer, for statements. */
export const TYPES_WITH_TEXTS = {
  message: Object.keys(DELETED_FIELDS.message),
  answer: Object.keys(DELETED_FIELDS.answer),
} as const;
