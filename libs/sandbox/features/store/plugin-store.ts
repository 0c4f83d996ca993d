import { inTransaction, inWorkspace } from '@antiphon/database';
import type { Logger } from '@antiphon/observability';
import type pg from 'pg';
import type { ServeStore, StoreResponse } from '../cell/exchange.js';
import type { StoreRequest } from '../cell/protocol.js';

/** Maximum number of keys of a plug-in in one workspace, over all of its stores. */
export const MAX_STORE_KEYS = 1_000;
/** Maximum number of bytes of its keys and values. */
export const MAX_STORE_BYTES = 4 * 1024 * 1024;
export const MAX_VALUE_BYTES = 64 * 1024;

/** Stores of one call of a plug-in. */
export interface StoreGrant {
  readonly workspace: string;
  readonly plugin: string;
  /** Names of the stores that it was granted. */
  readonly stores: ReadonlySet<string>;
  /** Called right before a change, which waits for the promise and fails when it rejects. */
  readonly beforeChange: (signal: AbortSignal) => Promise<void>;
}

const EMPTY = new Uint8Array(0);
const refusedAnswer = (reason: string): StoreResponse => ({
  answer: { end: 'refused', reason: `store: ${reason}` },
  body: EMPTY,
});
const FULL: StoreResponse = { answer: { end: 'full' }, body: EMPTY };
const done = (found: boolean, body: Uint8Array = EMPTY): StoreResponse => ({
  answer: { end: 'done', found },
  body,
});

const GET =
  'select value from plugin_values where workspace = $1 and plugin = $2 and store = $3 and key = $4';
const DELETE = 'delete from plugin_values where workspace = $1 and plugin = $2 and store = $3 and key = $4';
const LIST = `select key from plugin_values where workspace = $1 and plugin = $2 and store = $3
  and starts_with(key, $4) order by key limit ${MAX_STORE_KEYS}`;
/** Changes of one plug-in's values wait for each other, so that none exceeds its quota. */
const LOCK = 'select pg_advisory_xact_lock(hashtextextended($1, 0))';
const COUNT_OTHERS = `select count(*)::int as keys, coalesce(sum(octet_length(key) + octet_length(value)), 0)::int as bytes
  from plugin_values where workspace = $1 and plugin = $2 and not (store = $3 and key = $4)`;
const PUT = `insert into plugin_values (workspace, plugin, store, key, value) values ($1, $2, $3, $4, $5)
  on conflict (workspace, plugin, store, key) do update set value = excluded.value`;

/** Key-value stores of plug-ins, each of one workspace. */
export class PluginStore {
  constructor(
    private readonly pool: pg.Pool,
    private readonly logger: Logger,
  ) {}

  /** Creates the access of one call. */
  serveCall(grant: StoreGrant): ServeStore {
    return async (request, value, signal) => {
      try {
        return await this.serve(grant, request, value, signal);
      } catch (error) {
        this.logger.warn({ plugin: grant.plugin, err: error }, 'plugin store request failed');
        return refusedAnswer('it could not be used');
      }
    };
  }

  private async serve(
    { workspace, plugin, stores, beforeChange }: StoreGrant,
    { op, store, key }: StoreRequest,
    value: Uint8Array,
    signal: AbortSignal,
  ): Promise<StoreResponse> {
    if (!stores.has(store)) return refusedAnswer(`${JSON.stringify(store)} is not granted to this plug-in`);
    if (key.includes('\0')) return refusedAnswer('a key has a character that cannot be stored');
    const place = [workspace, plugin, store, key];
    const db = inWorkspace(this.pool, workspace);
    switch (op) {
      case 'get': {
        const { rows } = await db.query<{ value: Buffer }>(GET, place);
        return done(rows[0] !== undefined, rows[0]?.value);
      }
      case 'list': {
        const { rows } = await db.query<{ key: string }>(LIST, place);
        return done(true, Buffer.from(JSON.stringify(rows.map((row) => row.key))));
      }
      case 'delete': {
        await beforeChange(signal);
        const { rowCount } = await db.query(DELETE, place);
        return done((rowCount ?? 0) > 0);
      }
      case 'set':
        if (value.length > MAX_VALUE_BYTES) return FULL;
        await beforeChange(signal);
        return this.set(place, value);
      default:
        return refusedAnswer('it has no such operation');
    }
  }

  private set(place: readonly string[], value: Uint8Array): Promise<StoreResponse> {
    const [workspace = '', plugin = '', , key = ''] = place;
    return inTransaction(
      this.pool,
      async (client) => {
        await client.query(LOCK, [`plugin_values/${workspace}/${plugin}`]);
        const { rows } = await client.query<{ keys: number; bytes: number }>(COUNT_OTHERS, [...place]);
        const { keys = 0, bytes = 0 } = rows[0] ?? {};
        const size = Buffer.byteLength(key) + value.length;
        if (keys >= MAX_STORE_KEYS || bytes + size > MAX_STORE_BYTES) return FULL;
        await client.query(PUT, [...place, Buffer.from(value)]);
        return done(true);
      },
      workspace,
    );
  }
}
