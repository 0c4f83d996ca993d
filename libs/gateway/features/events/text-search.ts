import type { EventsQuery } from '@antiphon/contracts/gateway';
import type { WorkspaceQueries } from '@antiphon/database';
import { TYPES_WITH_TEXTS } from '../frames/deleted-parts.js';
import { addFilters, createConditions, EVENT_SIZE_SQL, type Found, type Range } from './event-filter.js';

/** Events that one statement examines. */
const STATEMENT_EVENTS = 10_000;
/** Bytes that the events of one statement may have. A compressed event counts as a whole one. */
const STATEMENT_BYTES = 64 * 1024 * 1024;

/** Where a search begins and ends, and what it looks for. */
export interface TextSearch {
  readonly workspace: string;
  readonly query: EventsQuery;
  readonly sought: string;
  readonly range: Range;
  readonly limit: number;
  /** Event streams of the agent that the query names. */
  readonly streams: readonly string[] | null;
  /** Categories whose data the reader may read; null for all. */
  readonly categories: readonly string[] | null;
}

/** Result of a statement: where it ended, and the bytes of text that it read. */
export interface SearchStep {
  readonly found: Found[];
  /** Position up to which the range was examined, or down to which; null if the whole range was. */
  readonly reached: number | null;
  readonly bytes: number;
}

/**
 * Returns the statement that examines the next events of a range for a text, few enough that their
 * bytes are bounded. The text is neither found in deleted messages nor in data of other categories.
 * The last row has no id: it says how far the statement came.
 */
export const textSearchSql = (search: TextSearch): { readonly text: string; readonly values: unknown[] } => {
  const { workspace, query, sought, range, limit, streams, categories } = search;
  const target = createConditions();
  addFilters(target, workspace, query, range, streams);
  const { conditions, values, add } = target;
  if (categories !== null) add((p) => `category = any(${p})`, categories);
  const order = query.order ?? 'asc';
  values.push(sought, TYPES_WITH_TEXTS.message, TYPES_WITH_TEXTS.answer, limit);
  const at = (back: number): string => `$${values.length - back}`;
  return {
    text: `with sized as (
        select *, sum(size) over (order by position ${order} rows unbounded preceding) as so_far
        from (select position, workspace, stream_id, type, data, metadata, ${EVENT_SIZE_SQL} as size
          from events where ${conditions.join(' and ')} order by position ${order} limit ${STATEMENT_EVENTS}) events),
      examined as materialized (
        select position, size, so_far, octet_length(content) as bytes,
          position(lower(${at(3)}) in content) > 0 and not exists (
            select from events d where d.workspace = events.workspace and d.stream_id = events.stream_id
              and d.type = 'ChatMessageDeleted' and d.data ->> 'turnId' = events.data ->> 'turnId'
              and events.type = any (case d.data ->> 'part' when 'message' then ${at(2)}::text[] else ${at(1)}::text[] end)
          ) as is_hit
        from (select *, lower(data::text) as content from sized where so_far - size < ${STATEMENT_BYTES} offset 0) events)
      (select position, size as bytes, null::boolean as is_whole from examined where is_hit
        order by position ${order} limit ${at(0)})
      union all
      select ${order === 'asc' ? 'max' : 'min'}(position), sum(bytes),
        count(*) < ${STATEMENT_EVENTS} and coalesce(max(so_far), 0) < ${STATEMENT_BYTES} from examined`,
    values,
  };
};

interface Row {
  readonly position: string | null;
  readonly bytes: string | null;
  /** Null in the row of an event. */
  readonly is_whole: boolean | null;
}

/** Examines the next events of a range for a text. */
export const searchText = async (db: WorkspaceQueries, search: TextSearch): Promise<SearchStep> => {
  const { text, values } = textSearchSql(search);
  const { rows } = await db.query<Row>(text, values);
  const end = rows.find((row) => row.is_whole !== null);
  const found = rows.filter((row) => row.is_whole === null);
  return {
    found: found.map(({ position, bytes }) => ({ position: Number(position), bytes: Number(bytes) })),
    reached: end?.is_whole === false ? Number(end.position) : null,
    bytes: Number(end?.bytes ?? 0),
  };
};
