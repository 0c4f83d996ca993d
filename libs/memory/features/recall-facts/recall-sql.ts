/** Facts of a key that a request reads at most, the newest ones. */
export const MAX_FACTS_READ = 500;

/**
 * One statement, so that checkpoint, version and facts are of one snapshot: what the log has behind them is read
 * after it, and nothing is folded twice or left out. Facts come as one JSON text, oldest first: decoding rows of
 * sixty facts column by column took the client four times as long as the query took the server.
 * $1 workspace, $2 session, $3 hash of its key (null: the row's), $4 whether superseded facts are wanted,
 * $5 the checkpoint's name.
 */
export const RECALL_SQL = `select
    coalesce((select position from projection_checkpoints where name = $5), 0) as checkpoint,
    s.version, s.session_key,
    (select json_agg(json_build_array(fact_id, subject, predicate, object, confidence, learned_at, superseded_at,
        source_event_id) order by position, ordinal)
      from (select * from memory_facts m
        where m.workspace = $1 and m.key_hash = coalesce($3::bytea, s.key_hash) and ($4 or m.superseded_at is null)
        order by position desc, ordinal desc limit ${MAX_FACTS_READ}) newest) as facts
  from (select) as always
  left join memory_sessions s on s.workspace = $1 and s.session_id = $2`;

/** What of a session's event stream matters to memory, behind a version or behind a position of the log. */
const TAIL_SQL = (
  behind: string,
): string => `select h.version as head, e.event_id, e.type, e.schema_version, e.data
  from stream_heads h
  left join events e on e.workspace = h.workspace and e.stream_id = h.stream_id and ${behind}
    and e.type = any ($4)
  where h.workspace = $1 and h.stream_id = $2 order by e.stream_version`;

export const TAIL_BEHIND_VERSION_SQL = TAIL_SQL('e.stream_version > $3');
export const TAIL_BEHIND_POSITION_SQL = TAIL_SQL('e.position > $3');
