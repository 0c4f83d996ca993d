/** Facts of a key that a request reads at most, the newest ones. */
export const MAX_FACTS_READ = 500;

/**
 * One statement, so that checkpoint, version, facts and what the session's stream has behind the version are of one
 * snapshot: nothing is folded twice or left out. The stream is only touched where the version is below $6.
 * Facts and events come as one JSON text each, oldest first: decoding rows of sixty facts column by column took the
 * client four times as long as the query took the server.
 * $1 workspace, $2 session, $3 hash of its key (null: the row's), $4 whether superseded facts are wanted,
 * $5 the checkpoint's name, $6 the version from which the rows are enough, $7 the session's stream, $8 types of events.
 */
export const RECALL_SQL = `select
    coalesce((select position from projection_checkpoints where name = $5), 0) as checkpoint,
    s.version, s.session_key,
    (select json_agg(json_build_array(fact_id, subject, predicate, object, confidence, learned_at, superseded_at,
        source_event_id) order by position, ordinal)
      from (select * from memory_facts m
        where m.workspace = $1 and m.key_hash = coalesce($3::bytea, s.key_hash) and ($4 or m.superseded_at is null)
        order by position desc, ordinal desc limit ${MAX_FACTS_READ}) newest) as facts,
    case when coalesce(s.version, 0) < $6::bigint then coalesce(
      (select version from stream_heads where workspace = $1 and stream_id = $7), 0) end as head,
    case when coalesce(s.version, 0) < $6::bigint then
      (select json_agg(json_build_array(e.event_id, e.type, e.schema_version, e.data) order by e.stream_version)
        from events e where e.workspace = $1 and e.stream_id = $7 and e.stream_version > coalesce(s.version, 0)
          and e.type = any ($8)) end as behind
  from (select) as always
  left join memory_sessions s on s.workspace = $1 and s.session_id = $2`;

/** What of a session's event stream matters to memory, behind a position of the log, oldest first. */
export const TAIL_SQL = `select event_id, type, schema_version, data from events
  where workspace = $1 and stream_id = $2 and position > $3 and type = any ($4) order by stream_version`;
