import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import { bug } from '@antiphon/kernel';
import type { Lease, LeaseAttempt, LeaseStore } from './lease.port.js';

/** Free, lapsed or own: taken. An own unexpired lease keeps its epoch; every other way raises it. */
const ACQUIRE_SQL = `insert into leases as l (workspace, name, owner, epoch, expires_at)
  values ($1, $2, $3, 1, clock_timestamp() + make_interval(secs => $4::float8 / 1000))
  on conflict (workspace, name) do update set
    epoch = case when l.owner = excluded.owner and l.expires_at > clock_timestamp() then l.epoch else l.epoch + 1 end,
    owner = excluded.owner, expires_at = excluded.expires_at
  where l.owner is null or l.owner = excluded.owner or l.expires_at <= clock_timestamp()
  returning epoch`;

const HOLDER_SQL = 'select owner, epoch from leases where workspace = $1 and name = $2';

/** Rows are locked in the order in which an append locks them, so the two never wait in a circle. */
const RENEW_SQL = `with held as (
    select l.workspace, l.name from leases l
    join unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) as r (workspace, name, owner, epoch)
      on l.workspace = r.workspace and l.name = r.name and l.owner = r.owner and l.epoch = r.epoch
    order by l.workspace, l.name for update of l)
  update leases l set expires_at = clock_timestamp() + make_interval(secs => $5::float8 / 1000)
  from held where l.workspace = held.workspace and l.name = held.name
  returning l.workspace, l.name`;

const RELEASE_SQL = `update leases set owner = null, expires_at = clock_timestamp()
  where workspace = $1 and name = $2 and owner = $3 and epoch = $4`;

const RELEASE_OWNER_SQL = `with held as (
    select workspace, name from leases where starts_with(owner, $1) order by workspace, name for update)
  update leases l set owner = null, expires_at = clock_timestamp()
  from held where l.workspace = held.workspace and l.name = held.name`;

const run = async <Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  name: string,
  text: string,
  values: unknown[],
): Promise<pg.QueryResult<Row>> =>
  pool.query<Row>({ name, text, values }).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });

const keyOf = ({ workspace, name }: { workspace: string; name: string }): string => `${workspace} ${name}`;

/** Leases as rows, judged by the database's clock alone. */
export const createLeaseStore = (pool: pg.Pool): LeaseStore => {
  const holderOf = async (workspace: string, name: string) => {
    const { rows } = await run<{ owner: string | null; epoch: string }>(
      pool,
      'antiphon_lease_holder',
      HOLDER_SQL,
      [workspace, name],
    );
    return { owner: rows[0]?.owner ?? null, epoch: Number(rows[0]?.epoch ?? 0) };
  };

  const acquire = async (
    workspace: string,
    name: string,
    owner: string,
    ttlMs: number,
  ): Promise<LeaseAttempt> => {
    // A lease that is released between the two statements is simply asked for again.
    for (let attempt = 0; attempt < 10; attempt++) {
      const { rows } = await run<{ epoch: string }>(pool, 'antiphon_lease_acquire', ACQUIRE_SQL, [
        workspace,
        name,
        owner,
        ttlMs,
      ]);
      if (rows[0]) return { acquired: true, lease: { workspace, name, owner, epoch: Number(rows[0].epoch) } };
      const { owner: holder, epoch } = await holderOf(workspace, name);
      if (holder !== null) return { acquired: false, owner: holder, epoch };
    }
    throw bug('LOG.LEASE_CONTENDED', `lease ${name} kept changing hands`);
  };

  const renew = async (leases: readonly Lease[], ttlMs: number): Promise<readonly string[]> => {
    if (leases.length === 0) return [];
    const { rows } = await run<{ workspace: string; name: string }>(pool, 'antiphon_lease_renew', RENEW_SQL, [
      leases.map(({ workspace }) => workspace),
      leases.map(({ name }) => name),
      leases.map(({ owner }) => owner),
      leases.map(({ epoch }) => epoch),
      ttlMs,
    ]);
    const kept = new Set(rows.map(keyOf));
    return leases.filter((lease) => !kept.has(keyOf(lease))).map(({ name }) => name);
  };

  return {
    acquire,
    renew,
    release: async ({ workspace, name, owner, epoch }) => {
      await run(pool, 'antiphon_lease_release', RELEASE_SQL, [workspace, name, owner, epoch]);
    },
    releaseOwner: async (ownerPrefix) =>
      (await run(pool, 'antiphon_lease_release_owner', RELEASE_OWNER_SQL, [ownerPrefix])).rowCount ?? 0,
  };
};
