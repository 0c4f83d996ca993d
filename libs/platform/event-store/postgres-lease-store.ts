import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import { bug, createReadBatcher } from '@antiphon/kernel';
import type { Lease, LeaseAttempt, LeaseStore } from './event-store.port.js';

// Functions of the migrations: each refuses a lease that the role's service may not hold.
const ACQUIRE_SQL = 'select antiphon_lease_acquire($1, $2, $3, $4) as epoch';
const HOLDER_SQL = 'select owner, epoch from antiphon_lease_holder($1, $2)';
const RENEW_SQL = 'select workspace, name from antiphon_lease_renew($1, $2, $3, $4, $5)';
// In the order in which an append locks leases.
const RELEASE_SQL = `select antiphon_lease_release(workspace, name, owner, epoch) from (
  select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) as l (workspace, name, owner, epoch)
  order by workspace collate "C", name collate "C") l`;
const RELEASE_OWNER_SQL = 'select antiphon_lease_release_owner($1) as released';

const MAX_ACQUIRE_ATTEMPTS = 10;
/** Maximum number of leases that one statement releases. */
const MAX_RELEASED = 500;

const toKey = ({ workspace, name }: { workspace: string; name: string }): string => `${workspace} ${name}`;

const columnsOf = (leases: readonly Lease[]): unknown[] => [
  leases.map(({ workspace }) => workspace),
  leases.map(({ name }) => name),
  leases.map(({ owner }) => owner),
  leases.map(({ epoch }) => epoch),
];

class PostgresLeaseStore implements LeaseStore {
  private readonly releaseBatched = createReadBatcher<Lease, void>(
    (leases) => this.releaseAll(leases),
    MAX_RELEASED,
  );

  constructor(private readonly pool: pg.Pool) {}

  async acquire(workspace: string, name: string, owner: string, ttlMs: number): Promise<LeaseAttempt> {
    const values = [workspace, name, owner, ttlMs];
    // The holder may release the lease between the two statements: then acquire it again.
    for (let attempt = 0; attempt < MAX_ACQUIRE_ATTEMPTS; attempt++) {
      const { rows } = await this.query<{ epoch: string | null }>(
        'antiphon_lease_acquire',
        ACQUIRE_SQL,
        values,
      );
      const epoch = rows[0]?.epoch ?? null;
      if (epoch !== null) return { acquired: true, lease: { workspace, name, owner, epoch: Number(epoch) } };
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
      [...columnsOf(leases), ttlMs],
    );
    const renewed = new Set(rows.map(toKey));
    return leases.filter((lease) => !renewed.has(toKey(lease))).map(({ name }) => name);
  }

  /** Releases a lease. Leases that are released at the same time share a statement. */
  release(lease: Lease): Promise<void> {
    return this.releaseBatched(lease);
  }

  async releaseOwner(ownerPrefix: string): Promise<number> {
    const { rows } = await this.query<{ released: string }>(
      'antiphon_lease_release_owner',
      RELEASE_OWNER_SQL,
      [ownerPrefix],
    );
    return Number(rows[0]?.released ?? 0);
  }

  private async releaseAll(leases: readonly Lease[]): Promise<void[]> {
    await this.query('antiphon_lease_release', RELEASE_SQL, columnsOf(leases));
    return leases.map(() => undefined);
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
