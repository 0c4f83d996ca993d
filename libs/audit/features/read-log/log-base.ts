import type pg from 'pg';
import { type Finding, violation } from '@antiphon/audit-domain';
import { type About, type CheckReport, nowhere, Tally } from '../audit-report.js';

const logBaseIsExplained: About = {
  name: 'log-base-is-explained',
  about: 'archives explain every position that the log lacks, and every checkpoint of a stream that left it',
  counts: 'logs',
};

interface BaseRow {
  readonly base: string;
  readonly cut: string;
  readonly archive_id: string | null;
  readonly stream_id: string | null;
}

const BASE_SQL = `select h.base_position as base, coalesce((select max(cut_position) from log_archives), 0) as cut,
    a.archive_id, a.stream_id
  from log_head h left join lateral (
    select s.archive_id, s.stream_id from archived_streams s
    where not exists (select from log_archives l where l.archive_id = s.archive_id)
    order by s.workspace, s.stream_id limit 1) a on true
  where h.id = 1`;

const compare = ({ base, cut, archive_id: archiveId, stream_id: streamId }: BaseRow): Finding[] => {
  const findings: Finding[] = [];
  if (base !== cut)
    findings.push(
      violation(nowhere(''), `the log begins after position ${base}; its archives end at position ${cut}`),
    );
  if (streamId !== null)
    findings.push(
      violation(nowhere('', streamId), `${streamId} left for archive ${archiveId}, which does not exist`),
    );
  return findings;
};

/** Compares the base position of the log with its archives. */
export const checkLogBase = async (client: pg.ClientBase): Promise<CheckReport> => {
  const { rows } = await client.query<BaseRow>(BASE_SQL);
  const tally = new Tally(logBaseIsExplained, false);
  tally.count(rows.length);
  const missing = [violation(nowhere(''), 'the log has no row in log_head')];
  tally.add(rows[0] ? compare(rows[0]) : missing);
  return tally.report();
};
