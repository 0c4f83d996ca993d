import type pg from 'pg';
import { violation } from '@antiphon/audit-domain';
import type { Finding } from '@antiphon/audit-domain';
import { type CheckReport, Tally } from '../audit-report.js';
import { readRows } from '../read-log/read-log.js';

interface CitedRow {
  readonly position: string;
  readonly workspace: string;
  readonly stream_id: string;
  readonly stream_version: string;
  readonly event_id: string;
  readonly digest: string;
  readonly size: string | null;
  readonly stored_size: string | null;
  readonly stored_digest: string | null;
  readonly is_erased: boolean;
  /** True where a fact says that the bytes are erased. */
  readonly has_erasure: boolean;
}

/** Selects the first event that cites each digest, with the digest and size of its stored bytes. */
const citedSql = (after: number | null): string => `select c.*, octet_length(b.body)::text as stored_size,
    encode(sha256(b.body), 'hex') as stored_digest, b.erased_at is not null as is_erased,
    exists (select from events e where e.type = 'FileBytesErased' and e.workspace = c.workspace
      and e.data ->> 'digest' = c.digest) as has_erasure
  from (select distinct on (workspace, digest) position, workspace, stream_id, stream_version, event_id, digest, size
    from (select position, workspace, stream_id, stream_version, event_id,
        coalesce(data #>> '{stored,digest}', data ->> 'digest') as digest,
        coalesce(data #>> '{stored,size}', data ->> 'size') as size
      from events where (category = 'file' or type = 'ChatFileAttached'
        or (type = 'ToolCallCompleted' and data ? 'stored'))
      ${after === null ? '' : `and position > ${after}`}) cited
    where digest is not null
    order by workspace, digest, position) c
  left join file_blobs b on b.workspace = c.workspace and b.digest = c.digest`;

const erasureOf = ({ digest, stored_size: stored, is_erased: isErased }: CitedRow): string | null =>
  isErased && stored === '0'
    ? null
    : `the bytes of ${digest} are stored, and a fact says that they are erased`;

const findingOf = (row: CitedRow): string | null => {
  const { digest, size, stored_size: stored, stored_digest: actual } = row;
  if (row.has_erasure) return erasureOf(row);
  if (row.is_erased) return `the bytes of ${digest} were erased, and no fact says so`;
  if (stored === null) return `the bytes of ${digest} are not stored`;
  if (actual !== digest) return `the bytes stored under ${digest} have the digest ${actual}`;
  return size === null || size === stored ? null : `${digest} has ${stored} bytes, the event names ${size}`;
};

const compareRow = (row: CitedRow): Finding[] => {
  const message = findingOf(row);
  const at = {
    ...{ position: Number(row.position), workspace: row.workspace, streamId: row.stream_id },
    ...{ streamVersion: Number(row.stream_version), eventId: row.event_id },
  };
  return message === null ? [] : [violation(at, message)];
};

const citedBytesAreStored = {
  name: 'cited-bytes-are-stored',
  about:
    'the bytes of every digest that a file or a chat cites are stored with this digest and size, or erased by a fact',
  counts: 'digests',
};

/** Compares the digests that events cite with the stored bytes, of all events or of new ones. */
export const compareBytes = async (client: pg.ClientBase, after: number | null): Promise<CheckReport> => {
  const tally = new Tally(citedBytesAreStored, false);
  for await (const row of readRows<CitedRow>(client, 'audit_bytes', citedSql(after))) {
    tally.count(1);
    tally.add(compareRow(row));
  }
  return tally.report();
};
