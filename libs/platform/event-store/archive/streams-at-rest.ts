import pg from 'pg';

/**
 * Defines when an event stream of a category is at rest: each event of a beginning type has its
 * event of an ending type.
 */
export interface RestRule {
  readonly category: string;
  /** Streams whose id starts with this prefix are never archived. */
  readonly retainedPrefix: string | null;
  readonly pairs: readonly { readonly begins: readonly string[]; readonly ends: readonly string[] }[];
}

/** The archived part of an event stream: all its events in the log, up to its head. */
export interface LeavingStream {
  readonly workspace: string;
  readonly streamId: string;
  readonly fromVersion: number;
  readonly toVersion: number;
  /** Hash of the last event. */
  readonly hash: Buffer;
  readonly events: number;
}

const listTypes = (types: readonly string[]): string =>
  types.map((type) => pg.escapeLiteral(type)).join(', ');
const countTypes = (types: readonly string[]): string =>
  `count(*) filter (where e.type in (${listTypes(types)}))`;

const isAtRestSql = ({ category, pairs }: RestRule): string => {
  const ended = pairs.map(({ begins, ends }) => `${countTypes(begins)} = ${countTypes(ends)}`).join(' and ');
  return `(e.category <> ${pg.escapeLiteral(category)} or (${ended}))`;
};
const isNotRetainedSql = ({ retainedPrefix }: RestRule): string[] =>
  retainedPrefix === null ? [] : [`not starts_with(e.stream_id, ${pg.escapeLiteral(retainedPrefix)})`];

const isCandidateSql = (rules: readonly RestRule[]): string =>
  [
    'e.position <= $1',
    '($3::text is null or e.workspace = $3)',
    `e.category in (${listTypes(rules.map(({ category }) => category))})`,
    ...rules.flatMap(isNotRetainedSql),
  ].join(' and ');

/**
 * Parameters: the last position that may be archived, the maximum number of events, and a workspace
 * or null. At least one stream is selected, however many events it has. Parked streams stay in the
 * log.
 */
const streamsSql = (rules: readonly RestRule[]): string => `with old as (
    select e.workspace, e.stream_id, min(e.stream_version) as from_version, max(e.stream_version) as to_version,
      count(*) as events, max(e.position) as last
    from events e
    where ${isCandidateSql(rules)}
    group by e.workspace, e.stream_id, e.category
    having ${rules.map(isAtRestSql).join(' and ')}
  ), leaving as (
    select o.*, h.hash, sum(o.events) over (order by o.last) - o.events as before
    from old o
    join stream_heads h on h.workspace = o.workspace and h.stream_id = o.stream_id and h.version = o.to_version
    where not exists (
      select from projection_parked p where p.workspace = o.workspace and p.stream_id = o.stream_id)
  )
  select workspace, stream_id, from_version, to_version, hash, events from leaving
  where before = 0 or before + events <= $2
  order by workspace, stream_id`;

interface StreamRow {
  readonly workspace: string;
  readonly stream_id: string;
  readonly from_version: string;
  readonly to_version: string;
  readonly hash: Buffer;
  readonly events: string;
}

export interface StreamSelection {
  readonly rules: readonly RestRule[];
  /** Selects only streams without events after this position. */
  readonly cut: number;
  readonly workspace: string | undefined;
  readonly maxEvents: number;
}

/** Finds the oldest event streams that are at rest and have no event after a position. */
export const findStreamsAtRest = async (
  client: pg.ClientBase,
  { rules, cut, workspace, maxEvents }: StreamSelection,
): Promise<LeavingStream[]> => {
  const { rows } = await client.query<StreamRow>(streamsSql(rules), [cut, maxEvents, workspace ?? null]);
  return rows.map((row) => ({
    workspace: row.workspace,
    streamId: row.stream_id,
    fromVersion: Number(row.from_version),
    toVersion: Number(row.to_version),
    hash: row.hash,
    events: Number(row.events),
  }));
};
