import type pg from 'pg';
import type { BlobAppend, Fence } from '../event-store.port.js';
import type { PreparedAppend } from './prepare-append.js';

/** A fence with the workspace of its lease. */
export type PlacedFence = Fence & { readonly workspace: string };
type PlacedBlob = BlobAppend & { readonly workspace: string };

/** Bytes by workspace and digest: two requests of a batch may store the same. */
const blobsOf = (batch: readonly PreparedAppend[]): ReadonlyMap<string, PlacedBlob> =>
  new Map(
    batch.flatMap(({ request: { workspace, blobs = [] } }) =>
      blobs.map((blob) => [`${workspace} ${blob.digest}`, { ...blob, workspace }] as const),
    ),
  );

/** Returns SQL that passes parameters by the names of their arguments. */
export const assignParameters = (names: readonly string[], firstParameter: number): string =>
  names.map((name, index) => `${name} => $${firstParameter + index}`).join(', ');

const RESULTS = 'base, heads, outcomes, firsts, lasts, to_jsonb(details) as details';

/** Arguments of `antiphon_append_extended` after those of `antiphon_append`. */
const EXTENSION_ARGUMENT_NAMES = ['p_extension_request', 'p_extension_workspace', 'p_extension'];

/** Parts of a statement that a batch may need, each with parameters of its own. */
export class AppendStatement {
  private name = 'antiphon_append';
  private readonly results = [RESULTS];
  private readonly extraArguments: string[] = [];
  /**
   * SQL conditions that are never true, evaluated before the append. Their locks come first:
   * file bytes in the order of workspace and digest, and leases of new sessions, whose ids no other
   * transaction knows.
   */
  private readonly before: string[] = [];

  /** The names are those of the arguments of `antiphon_append`, the flag first. */
  constructor(
    private readonly values: unknown[],
    private readonly argumentNames: readonly string[],
  ) {}

  /** Sets a lock timeout of this statement's own. */
  limitWaits(timeoutMs: number): this {
    this.name += '_timed';
    this.before.push(`set_config('lock_timeout', ${this.add(String(timeoutMs))}::text, true) is null`);
    return this;
  }

  /** Acquires leases in the transaction, before their fences are checked. */
  acquire(fences: readonly PlacedFence[]): this {
    const rows = fences.flatMap(({ workspace, lease, acquire }) =>
      acquire ? [{ ...acquire, workspace, lease }] : [],
    );
    if (rows.length === 0) return this;
    this.name += '_acquiring';
    const column = (key: keyof (typeof rows)[number], type: string): string =>
      `${this.add(rows.map((row) => row[key]))}::${type}[]`;
    const leases = [column('workspace', 'text'), column('lease', 'text'), column('owner', 'text')].join(', ');
    this.before.push(`(select count(antiphon_lease_acquire(l.workspace, l.name, l.owner, l.ttl_ms))
      from unnest(${leases}, ${column('ttlMs', 'float8')}) as l (workspace, name, owner, ttl_ms)) < 0`);
    return this;
  }

  /** Stores bytes in the transaction. They travel as one value of bytes: an array costs more. */
  storeBlobs(batch: readonly PreparedAppend[]): this {
    const rows = [...blobsOf(batch).values()];
    if (rows.length === 0) return this;
    this.name += '_storing';
    const column = (values: readonly unknown[], type: string): string => `${this.add(values)}::${type}[]`;
    const names = [
      column(
        rows.map(({ workspace }) => workspace),
        'text',
      ),
      column(
        rows.map(({ digest }) => digest),
        'text',
      ),
      column(
        rows.map(({ body }) => body.byteLength),
        'integer',
      ),
    ].join(', ');
    const bodies = this.add(Buffer.concat(rows.map(({ body }) => body)));
    this.before.push(`antiphon_put_blobs(${names}, ${bodies}::bytea) < 0`);
    return this;
  }

  /** Lets another service add events (`AppendRequest.extension`). */
  extend(batch: readonly PreparedAppend[]): this {
    const rows = batch.flatMap(({ request: { workspace, extension } }, index) =>
      extension ? [[index + 1, workspace, JSON.stringify(extension)] as const] : [],
    );
    if (rows.length === 0) return this;
    this.name += '_extended';
    this.results.push('to_jsonb(extensions) as extensions');
    EXTENSION_ARGUMENT_NAMES.forEach((name, at) =>
      this.extraArguments.push(`${name} => ${this.add(rows.map((row) => row[at]))}`),
    );
    return this;
  }

  query(): pg.QueryConfig {
    const { name, values, before, results } = this;
    const flag =
      before.length === 0 ? '$1' : `case when ${before.join(' or ')} then null else $1::boolean end`;
    const [flagName = '', ...tableNames] = this.argumentNames;
    const given = [`${flagName} => ${flag}`, assignParameters(tableNames, 2), ...this.extraArguments];
    const called = this.extraArguments.length > 0 ? 'antiphon_append_extended' : 'antiphon_append';
    return { name, text: `select ${results.join(', ')} from ${called}(${given.join(', ')})`, values };
  }

  private add(value: unknown): string {
    return `$${this.values.push(value)}`;
  }
}
