import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import { bug } from '@antiphon/kernel';
import type { Lease, LeaseAttempt, LeaseStore } from './event-store.port.js';

/**
 * Acquires a free, expired or own lease. An own unexpired lease keeps its epoch; every other
 * acquisition raises it.
 */
const ACQUIRE_SQL = `insert into leases as l (workspace, name, owner, epoch, expires_at)
  values ($1, $2, $3, 1, clock_timestamp() + make_interval(secs => $4::float8 / 1000))
  on conflict (workspace, name) do update set
    epoch = case when l.owner = excluded.owner and l.expires_at > clock_timestamp() then l.epoch else l.epoch + 1 end,
    owner = excluded.owner, expires_at = excluded.expires_at
  where l.owner is null or l.owner = excluded.owner or l.expires_at <= clock_timestamp()
  returning epoch`;

const HOLDER_SQL = 'select owner, epoch from leases where workspace = $1 and name = $2';

/** Locks rows in the order in which an append locks them, so that the two never deadlock. */
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

const MAX_ACQUIRE_ATTEMPTS = 10;

const toKey = ({ workspace, name }: { workspace: string; name: string }): string => `${workspace} ${name}`;

class PostgresLeaseStore implements LeaseStore {
  constructor(private readonly pool: pg.Pool) {}

  async acquire(workspace: string, name: string, owner: string, ttlMs: number): Promise<LeaseAttempt> {
    const values = [workspace, name, owner, ttlMs];
    // The holder may release the lease between the two statements: then acquire it again.
    for (let attempt = 0; attempt < MAX_ACQUIRE_ATTEMPTS; attempt++) {
      const { rows } = await this.query<{ epoch: string }>('antiphon_lease_acquire', ACQUIRE_SQL, values);
      if (rows[0]) return { acquired: true, lease: { workspace, name, owner, epoch: Number(rows[0].epoch) } };
      const holder = await this.readHolder(workspace, name);
      if (holder.owner !== null) return { acquired: false, owner: holder.owner, epoch: holder.epoch };
    }
    throw bug('LOG.LEASE_CONTENDED', `the owner of lease ${name} changed during every attempt to acquire it`);
  }

  async renew(leases: readonly Lease[], ttlMs: number): Promise<readonly string[]> {
    if (leases.length === 0) return [];
    const { rows } = await this.query<{ workspace: string; name: string }>(
      'antiphon_lease_renew',
      RENEW_SQL,
      [
        leases.map(({ workspace }) => workspace),
        leases.map(({ name }) => name),
        leases.map(({ owner }) => owner),
        leases.map(({ epoch }) => epoch),
        ttlMs,
      ],
    );
    const renewed = new Set(rows.map(toKey));
    return leases.filter((lease) => !renewed.has(toKey(lease))).map(({ name }) => name);
  }

  async release({ workspace, name, owner, epoch }: Lease): Promise<void> {
    await this.query('antiphon_lease_release', RELEASE_SQL, [workspace, name, owner, epoch]);
  }

  async releaseOwner(ownerPrefix: string): Promise<number> {
    const { rowCount } = await this.query('antiphon_lease_release_owner', RELEASE_OWNER_SQL, [ownerPrefix]);
    return rowCount ?? 0;
  }

  private async readHolder(workspace: string, name: string) {
    const { rows } = await this.query<{ owner: string | null; epoch: string }>(
      'antiphon_lease_holder',
      HOLDER_SQL,
      [workspace, name],
    );
    return { owner: rows[0]?.owner ?? null, epoch: Number(rows[0]?.epoch ?? 0) };
  }

  private query<Row extends pg.QueryResultRow>(
    name: string,
    text: string,
    values: unknown[],
  ): Promise<pg.QueryResult<Row>> {
    return this.pool.query<Row>({ name, text, values }).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
  }
}

/** Creates a store of leases as rows, judged by the database's clock alone. */
export const createLeaseStore = (pool: pg.Pool): LeaseStore => new PostgresLeaseStore(pool);
