import { PAGE_BYTES } from '../event-store.port.js';
import { isPageFull, type PagedRow, pageSql } from '../read/event-row.js';
import { epochChanged } from './projection-checkpoint.js';

/** Number of positions after which the tail begins again at the head of the log. */
const MAX_RANGE = 20_000;

/**
 * Reads the head, the checkpoints of some projections and the next events, on one snapshot. Events
 * begin after the first parameter, or after the head if it is null.
 */
export const TAIL_SQL = `with head as materialized (
    select h.epoch as log_epoch, h.base_position as base, antiphon_head_position() as head,
      (select coalesce(jsonb_object_agg(n.name, jsonb_build_object('position', coalesce(c.position, 0), 'epoch', c.epoch,
          'parked', exists (select from projection_parked p where p.projection = n.name))), '{}')
        from unnest($2::text[]) n (name) left join projection_checkpoints c on c.name = n.name) as checkpoints
    from log_head h where h.id = 1),
  at as materialized (
    select *, case when $1::bigint between head - ${MAX_RANGE} and head then $1::bigint else head end as after from head)
  select at.*, e.* from at left join lateral (${pageSql(
    `where position > at.after and position <= at.head and ($3::text[] is null or category = any ($3))
      order by position limit $4`,
    'position',
    String(PAGE_BYTES),
  )}) e on true
  order by e.position`;

/** Progress of a projection in a read of the tail; `epoch` is null without a checkpoint. */
interface TailCheckpoint {
  readonly position: number;
  readonly epoch: number | null;
  readonly parked: boolean;
}

export interface TailRow extends Omit<PagedRow, 'position'> {
  readonly log_epoch: string;
  readonly base: string;
  readonly head: string;
  readonly after: string;
  readonly checkpoints: Readonly<Record<string, TailCheckpoint>>;
  /** Null in the only row of a read without events. */
  readonly position: string | null;
}

/** A read of the tail. */
export interface TailPage {
  readonly epoch: number;
  readonly base: number;
  readonly head: number;
  /** The rows have all wanted events after `after` and up to `to`. */
  readonly after: number;
  readonly to: number;
  readonly checkpoints: TailRow['checkpoints'];
  readonly rows: readonly { readonly row: PagedRow; readonly bytes: number }[];
}

export const toPage = (rows: readonly TailRow[], limit: number): TailPage => {
  const [first] = rows;
  if (first === undefined) throw new Error('the log has no head: the database is not migrated');
  const page = rows.flatMap((row) => (row.position === null ? [] : [row as PagedRow]));
  const head = Number(first.head);
  let before = 0;
  const sized = page.map((row) => {
    const bytes = Number(row.bytes_so_far) - before;
    before += bytes;
    return { row, bytes };
  });
  return {
    epoch: Number(first.log_epoch),
    base: Number(first.base),
    head,
    after: Number(first.after),
    to: isPageFull(page, { limit }) ? Number(page.at(-1)?.position ?? head) : head,
    checkpoints: first.checkpoints,
    rows: sized,
  };
};

/**
 * Returns the checkpoint of a projection; null if the read did not include it. Throws
 * `LOG.EPOCH_CHANGED` (bug).
 */
export const checkpointOf = (
  { checkpoints, epoch }: Pick<TailPage, 'checkpoints' | 'epoch'>,
  name: string,
): { readonly position: number; readonly hasParkedStreams: boolean } | null => {
  const found = checkpoints[name];
  if (found === undefined) return null;
  const { position, parked } = found;
  if (position > 0 && found.epoch !== null && found.epoch !== epoch)
    throw epochChanged(name, found.epoch, epoch);
  return { position, hasParkedStreams: parked };
};
