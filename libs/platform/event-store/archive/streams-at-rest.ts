import pg from 'pg';

/** Types that begin something in a stream, each ended by one of those that end it. */
export interface RestRule {
  readonly category: string;
  /** Streams with this beginning stay. */
  readonly keeps: string | null;
  readonly pairs: readonly { readonly begins: readonly string[]; readonly ends: readonly string[] }[];
}

/** What of an event stream leaves: all that the log still has of it, up to its head. */
export interface LeavingStream {
  readonly workspace: string;
  readonly streamId: string;
  readonly fromVersion: number;
  readonly toVersion: number;
  /** Of the last event. */
  readonly hash: Buffer;
  readonly events: number;
}

const list = (types: readonly string[]): string => types.map((type) => pg.escapeLiteral(type)).join(', ');
const times = (types: readonly string[]): string => `count(*) filter (where e.type in (${list(types)}))`;

const isAtRest = ({ category, pairs }: RestRule): string => {
  const ended = pairs.map(({ begins, ends }) => `${times(begins)} = ${times(ends)}`).join(' and ');
  return `(e.category <> ${pg.escapeLiteral(category)} or (${ended}))`;
};
const isKept = ({ keeps }: RestRule): string[] =>
  keeps === null ? [] : [`not starts_with(e.stream_id, ${pg.escapeLiteral(keeps)})`];

/** $1: the position up to which events may leave; $2: how many at most, but one stream at least; $3: a workspace, or null. */
const streamsSql = (rules: readonly RestRule[]): string => `with old as (
    select e.workspace, e.stream_id, min(e.stream_version) as from_version, max(e.stream_version) as to_version,
      count(*) as events, max(e.position) as last
    from events e
    where ${[`e.position <= $1`, `($3::text is null or e.workspace = $3)`, `e.category in (${list(rules.map(({ category }) => category))})`, ...rules.flatMap(isKept)].join(' and ')}
    group by e.workspace, e.stream_id, e.category
    having ${rules.map(isAtRest).join(' and ')}
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

interface Row {
  readonly workspace: string;
  readonly stream_id: string;
  readonly from_version: string;
  readonly to_version: string;
  readonly hash: Buffer;
  readonly events: string;
}

export interface AtRest {
  readonly rules: readonly RestRule[];
  /** The position behind which streams have nothing. */
  readonly cut: number;
  readonly workspace: string | undefined;
  readonly maxEvents: number;
}

/** Event streams that have nothing after a position, and nothing begun that has not ended; the oldest ones first. */
export const findStreamsAtRest = async (
  client: pg.ClientBase,
  { rules, cut, workspace, maxEvents }: AtRest,
): Promise<LeavingStream[]> => {
  const { rows } = await client.query<Row>(streamsSql(rules), [cut, maxEvents, workspace ?? null]);
  return rows.map((row) => ({
    workspace: row.workspace,
    streamId: row.stream_id,
    fromVersion: Number(row.from_version),
    toVersion: Number(row.to_version),
    hash: row.hash,
    events: Number(row.events),
  }));
};
