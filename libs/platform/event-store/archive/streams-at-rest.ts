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
  /** Function of the database that returns true for a stream that stays: (workspace, stream). */
  readonly staysIf?: string;
  /**
   * Prefixes of the streams of messages, the only ones of this category that leave. Of these, read
   * messages leave (`antiphon_messages_that_leave`), and the rest of the stream stays.
   */
  readonly messagePrefixes?: readonly string[];
}

/**
 * The archived part of an event stream: all its events in the log, up to its head. For messages, up
 * to the last one that every reader has read.
 */
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

const leavesSql = ({ category, staysIf }: RestRule): string[] => {
  if (staysIf === undefined) return [];
  const stays = `${pg.escapeIdentifier(staysIf)}(o.workspace, o.stream_id)`;
  return [`and (o.category <> ${pg.escapeLiteral(category)} or not ${stays})`];
};

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
    select e.workspace, e.stream_id, e.category, min(e.stream_version) as from_version, max(e.stream_version) as to_version,
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
      ${rules.flatMap(leavesSql).join(' ')}
  )
  select workspace, stream_id, from_version, to_version, hash, events from leaving
  where before = 0 or before + events <= $2
  order by workspace, stream_id`;

/** As `streamsSql`, for the read messages of the log. Parameters: the same. */
const messagesSql = (prefixes: readonly string[]): string => `with streams as (
    select h.workspace, h.stream_id from stream_heads h
    where ($3::text is null or h.workspace = $3)
      and (${prefixes.map((prefix) => `starts_with(h.stream_id, ${pg.escapeLiteral(prefix)})`).join(' or ')})
  ), leaving as (
    select s.workspace, s.stream_id, part.from_version, v.to_version, part.events, part.last,
      sum(part.events) over (order by part.last) - part.events as before
    from streams s
    cross join lateral (
      select antiphon_messages_that_leave(s.workspace, s.stream_id, $1) as to_version) v
    cross join lateral (
      select min(e.stream_version) as from_version, count(*) as events, max(e.position) as last from events e
      where e.workspace = s.workspace and e.stream_id = s.stream_id and e.stream_version <= v.to_version) part
    where v.to_version > 0 and part.events > 0 and not exists (
      select from projection_parked p where p.workspace = s.workspace and p.stream_id = s.stream_id)
  )
  select l.workspace, l.stream_id, l.from_version, l.to_version, e.hash, l.events from leaving l
  join events e on e.workspace = l.workspace and e.stream_id = l.stream_id and e.stream_version = l.to_version
  where l.before = 0 or l.before + l.events <= $2
  order by l.workspace, l.stream_id`;

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
  const wholeRules = rules.filter(({ messagePrefixes }) => messagePrefixes === undefined);
  const values = [cut, maxEvents, workspace ?? null];
  const whole = wholeRules.length === 0 ? [] : await select(client, streamsSql(wholeRules), values);
  const left = maxEvents - whole.reduce((sum, { events }) => sum + events, 0);
  const prefixes = rules.flatMap(({ messagePrefixes = [] }) => messagePrefixes);
  if (prefixes.length === 0 || left <= 0) return whole;
  const messages = await select(client, messagesSql(prefixes), [cut, left, workspace ?? null]);
  return [...whole, ...messages].sort(byStream);
};

/** Orders streams as the archiver locks them. */
const byStream = (a: LeavingStream, b: LeavingStream): number =>
  compareTexts(a.workspace, b.workspace) || compareTexts(a.streamId, b.streamId);
const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const select = async (
  client: pg.ClientBase,
  text: string,
  values: readonly unknown[],
): Promise<LeavingStream[]> => {
  const { rows } = await client.query<StreamRow>(text, [...values]);
  return rows.map((row) => ({
    workspace: row.workspace,
    streamId: row.stream_id,
    fromVersion: Number(row.from_version),
    toVersion: Number(row.to_version),
    hash: row.hash,
    events: Number(row.events),
  }));
};
