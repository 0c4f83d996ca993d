import type { CredentialView } from '@antiphon/contracts/agent';
import { createBoundedMap, type Clock, type Ids } from '@antiphon/kernel';
import {
  inWorkspace,
  type OperationalClient,
  type OperationalTables,
  type ProviderCredentialRow,
} from '@antiphon/prisma-client';
import type pg from 'pg';
import { openSecret, rewrapSecret, sealSecret } from './credential-cipher.js';
import { newestOf, type ReadMasterKeys } from './master-keys.js';

/** Workspace of statements that concern all workspaces. Row-level security knows it. */
const ALL_WORKSPACES = '*';
/** Data keys that one request wraps. */
const REWRAP_BATCH = 100;

/** Age up to which a read row serves calls, ms. */
const MAX_AGE_MS = 1_000;
const MAX_CACHED = 1_000;

interface CachedRow {
  readonly readAt: number;
  readonly row: Promise<ProviderCredentialRow | null>;
}

export interface CredentialStoreOptions {
  readonly prisma: OperationalClient;
  readonly masterKeys: ReadMasterKeys;
  readonly clock: Clock;
  readonly ids: Ids;
}

export interface Rewrapped {
  readonly masterKeyId: string;
  readonly rewrapped: number;
  readonly remaining: number;
}

const WRITE_SQL = `insert into provider_credentials
    (workspace, provider, credential_id, ciphertext, data_key, master_key_id, created_by, created_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8)
  on conflict (workspace, provider) do update set credential_id = excluded.credential_id,
    ciphertext = excluded.ciphertext, data_key = excluded.data_key, master_key_id = excluded.master_key_id,
    created_by = excluded.created_by, created_at = excluded.created_at`;
const REMOVE_SQL = 'delete from provider_credentials where workspace = $1 and provider = $2';

const viewOf = ({ provider, masterKeyId, createdBy, createdAt }: ProviderCredentialRow): CredentialView => ({
  provider,
  masterKeyId,
  createdBy,
  createdAt: createdAt.toISOString(),
});

/** Stores the keys of providers, encrypted. A secret leaves it by `read` only. */
export class CredentialStore {
  /** Encrypted rows that calls have read. Calls in quick succession share one statement. */
  readonly #rows = createBoundedMap<CachedRow>(MAX_CACHED);

  constructor(private readonly options: CredentialStoreOptions) {}

  /** Encrypts and stores a key. Throws `CREDENTIAL.NO_MASTER_KEY`, `_MASTER_KEY_INVALID`. */
  async set(workspace: string, provider: string, secret: string, createdBy: string): Promise<CredentialView> {
    const data = this.seal(workspace, provider, secret, createdBy);
    this.#rows.clear();
    return this.#in(workspace, async ({ providerCredential }) => {
      const where = { workspace_provider: { workspace, provider } };
      return viewOf(await providerCredential.upsert({ where, create: data, update: data }));
    });
  }

  /** Encrypts a key as a row with a new id. Throws as `set` does. */
  seal(workspace: string, provider: string, secret: string, createdBy: string): ProviderCredentialRow {
    const { masterKeys, clock, ids } = this.options;
    const place = { workspace, provider, credentialId: ids.next() };
    const sealed = sealSecret(secret, place, newestOf(masterKeys()));
    return { ...place, ...sealed, createdBy, createdAt: new Date(clock.now()) };
  }

  /** Stores an encrypted key in a transaction of its workspace. It replaces the key before it. */
  async writeWithin(client: pg.ClientBase, row: ProviderCredentialRow): Promise<void> {
    const { workspace, provider, credentialId, ciphertext, dataKey, masterKeyId, createdBy, createdAt } = row;
    const sealed = [credentialId, Buffer.from(ciphertext), Buffer.from(dataKey), masterKeyId];
    await client.query(WRITE_SQL, [workspace, provider, ...sealed, createdBy, createdAt]);
    this.forget();
  }

  /** Removes a key in a transaction of its workspace. */
  async removeWithin(client: pg.ClientBase, workspace: string, provider: string): Promise<void> {
    await client.query(REMOVE_SQL, [workspace, provider]);
    this.forget();
  }

  /** Makes the next calls read their keys again. Must be called after a commit that changed one. */
  forget(): void {
    this.#rows.clear();
  }

  list(workspace: string): Promise<CredentialView[]> {
    return this.#in(workspace, async ({ providerCredential }) =>
      (await providerCredential.findMany({ where: { workspace }, orderBy: { provider: 'asc' } })).map(viewOf),
    );
  }

  async remove(workspace: string, provider: string): Promise<boolean> {
    const where = { workspace, provider };
    this.#rows.clear();
    const { count } = await this.#in(workspace, (tables) => tables.providerCredential.deleteMany({ where }));
    return count > 0;
  }

  /**
   * Returns the decrypted key, or null if none is stored. Throws `CREDENTIAL.UNREADABLE`,
   * `CREDENTIAL.MASTER_KEY_UNKNOWN`, `CREDENTIAL.MASTER_KEY_INVALID`, `CREDENTIAL.NO_MASTER_KEY`.
   */
  async read(workspace: string, provider: string): Promise<string | null> {
    const row = await this.#row(workspace, provider);
    // The place is the one that was asked for, not the row's own columns.
    return (
      row &&
      openSecret(row, { workspace, provider, credentialId: row.credentialId }, this.options.masterKeys())
    );
  }

  /**
   * Wraps data keys by the newest master key, some at a time. Each row changes alone, so that it is
   * readable at any time and a repeat continues.
   */
  async rewrap(): Promise<Rewrapped> {
    const keys = this.options.masterKeys();
    const newest = newestOf(keys);
    const where = { masterKeyId: { not: newest.id } };
    const rows = await this.#in(ALL_WORKSPACES, (tables) =>
      tables.providerCredential.findMany({ where, take: REWRAP_BATCH }),
    );
    for (const row of rows) {
      const { workspace, provider, credentialId, masterKeyId } = row;
      const { dataKey } = rewrapSecret(row, row, keys, newest);
      await this.#in(workspace, (tables) =>
        tables.providerCredential.updateMany({
          where: { workspace, provider, credentialId, masterKeyId },
          data: { dataKey, masterKeyId: newest.id },
        }),
      );
    }
    const remaining = await this.#in(ALL_WORKSPACES, (tables) => tables.providerCredential.count({ where }));
    return { masterKeyId: newest.id, rewrapped: rows.length, remaining };
  }

  #row(workspace: string, provider: string): Promise<ProviderCredentialRow | null> {
    const name = `${workspace}\n${provider}`;
    const now = this.options.clock.now();
    const cached = this.#rows.get(name);
    if (cached && now - cached.readAt < MAX_AGE_MS) return cached.row;
    const where = { workspace_provider: { workspace, provider } };
    const row = this.#in(workspace, (tables) => tables.providerCredential.findUnique({ where }));
    this.#rows.put(name, { readAt: now, row });
    row.catch(() => this.#rows.delete(name));
    return row;
  }

  #in<T>(workspace: string, work: (tables: OperationalTables) => Promise<T>): Promise<T> {
    return inWorkspace(this.options.prisma, workspace, work);
  }
}
