import type pg from 'pg';
import { inWorkspace, translateDatabaseError, type WorkspaceQueries } from '@antiphon/database';
import { isAppError, transient } from '@antiphon/kernel';
import { observeGauges } from '@antiphon/observability';
import { createLogReader } from '../read/log-reader.js';
import { requirePosition } from '../read/require-position.js';
import { FoldedTables, type FoldOptions } from './folded-tables.js';
import type { ProjectionDefinition } from './projection-definition.js';

const MAX_WORKSPACES = 3;
/** Time after which an unused connection is closed, ms. */
const IDLE_MS = 120_000;

export interface PastReadsOptions extends FoldOptions {
  readonly pool: pg.Pool;
  readonly definitions: readonly ProjectionDefinition[];
  /** Maximum number of workspaces whose past is open, each with a connection. Default: 3. */
  readonly maxWorkspaces?: number;
}

/** Past of one workspace. */
interface OpenPast {
  readonly folded: Promise<FoldedTables>;
  /** The same, once it is open. */
  tables?: FoldedTables;
  /** Number of reads that use it now. */
  users: number;
  idle?: NodeJS.Timeout;
}

const allInUse = (count: number): Error =>
  transient('LOG.PAST_NOT_READY', `the past of ${count} other workspaces is being read: try again`, {
    data: { retryAfterSeconds: 1 },
  });

/** Result of a read as of a position of the log. */
export interface AsOf<T> {
  readonly value: T;
  readonly position: number;
  readonly head: number;
}

/**
 * Reads projections as of any position of the log. The handlers of the projections fold the events
 * after the nearest snapshot into temporary tables. On a connection of their own these hide the
 * live tables, so that the statements of live reads answer for the past.
 */
export class PastReads {
  readonly #options: PastReadsOptions;
  /** By workspace, the least recently used first. */
  readonly #open = new Map<string, OpenPast>();
  readonly #stopObserving: () => void;

  constructor(options: PastReadsOptions) {
    this.#options = options;
    this.#stopObserving = observeGauges(
      { antiphon_past_bytes: 'Bytes of the temporary tables of reads of the past' },
      (report) => report('antiphon_past_bytes', this.bytes()),
    );
  }

  /**
   * Runs a read as of a position. Throws `LOG.POSITION_AHEAD`, `LOG.ARCHIVED` if events were
   * archived, and `LOG.PAST_NOT_READY` while a long log is folded or all connections are in use.
   */
  async read<T>(
    workspace: string,
    at: number,
    work: (queries: WorkspaceQueries, position: number) => Promise<T>,
  ): Promise<AsOf<T>> {
    try {
      const head = await createLogReader(this.#options.pool).headPosition();
      const position = requirePosition(at, head);
      const value = await this.#use(workspace, (folded) =>
        folded.read(position, (queries) => work(queries, position)),
      );
      return { value, position, head };
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }

  /**
   * Runs a read now, or as of a position: the value then has `position` and `head`. `upTo` is the
   * last position that the read may use.
   */
  async readAsOf<T extends object>(
    workspace: string,
    at: number | undefined,
    work: (queries: WorkspaceQueries, upTo: number) => Promise<T>,
  ): Promise<T & { position?: number; head?: number }> {
    if (at === undefined) return work(inWorkspace(this.#options.pool, workspace), Number.MAX_SAFE_INTEGER);
    const { value, position, head } = await this.read(workspace, at, work);
    return { ...value, position, head };
  }

  /** Runs a read of event streams now, or up to a position. Throws `LOG.POSITION_AHEAD`. */
  async readAt<T extends object>(
    at: number | undefined,
    work: (upTo: number) => Promise<T>,
  ): Promise<T & { position?: number; head?: number }> {
    if (at === undefined) return work(Number.MAX_SAFE_INTEGER);
    const head = await createLogReader(this.#options.pool).headPosition();
    const position = requirePosition(at, head);
    return { ...(await work(position)), position, head };
  }

  /** Returns the bytes of the temporary tables of all workspaces after their last reads. */
  bytes(): number {
    return [...this.#open.values()].reduce((sum, { tables }) => sum + (tables?.bytes ?? 0), 0);
  }

  async close(): Promise<void> {
    this.#stopObserving();
    await Promise.all([...this.#open].map(([workspace, past]) => this.#close(workspace, past)));
  }

  /** Uses the tables of a workspace. After the loss of their connection it opens another one. */
  async #use<T>(workspace: string, work: (folded: FoldedTables) => Promise<T>, isRetry = false): Promise<T> {
    const past = this.#acquire(workspace);
    try {
      const folded = await past.folded;
      return await work(folded).catch(async (error: unknown) => {
        if (isRetry || isAppError(error) || (await folded.isAlive())) throw error;
        await this.#close(workspace, past);
        return this.#use(workspace, work, true);
      });
    } finally {
      past.users--;
      if (past.users === 0) past.idle = setTimeout(() => void this.#close(workspace, past), IDLE_MS).unref();
    }
  }

  #acquire(workspace: string): OpenPast {
    const past = this.#open.get(workspace) ?? this.#create(workspace);
    // The end of the map is the most recently used.
    this.#open.delete(workspace);
    this.#open.set(workspace, past);
    clearTimeout(past.idle);
    past.users++;
    return past;
  }

  #create(workspace: string): OpenPast {
    const { pool, maxWorkspaces = MAX_WORKSPACES } = this.#options;
    if (this.#open.size >= maxWorkspaces) {
      const unused = [...this.#open].find(([, { users }]) => users === 0);
      if (!unused) throw allInUse(maxWorkspaces);
      void this.#close(...unused);
    }
    const folded = FoldedTables.open(pool, workspace, this.#options.definitions, this.#options);
    const past: OpenPast = { folded, users: 0 };
    folded.then(
      (tables) => (past.tables = tables),
      () => this.#forget(workspace, past),
    );
    return past;
  }

  #forget(workspace: string, past: OpenPast): void {
    clearTimeout(past.idle);
    if (this.#open.get(workspace) === past) this.#open.delete(workspace);
  }

  async #close(workspace: string, past: OpenPast): Promise<void> {
    this.#forget(workspace, past);
    await past.folded.then((folded) => folded.close()).catch(() => undefined);
  }
}
