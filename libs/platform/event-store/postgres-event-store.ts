import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import { invalid } from '@antiphon/kernel';
import { observeGauges, withSpan } from '@antiphon/observability';
import type { SpanStart } from '@antiphon/observability';
import { appendBatch, appendParams } from './append/append-batch.js';
import { AppendFlusher } from './append/append-flush.js';
import type { AppendOutcome } from './append/append-outcome.js';
import { GroupCommit, type GroupCommitOptions } from './append/group-commit.js';
import { prepareAppend, type PreparedAppend } from './append/prepare-append.js';
import type { AppendRequest, EventStore } from './event-store.port.js';
import { createLogReader } from './read/log-reader.js';

export interface PostgresEventStoreOptions extends Partial<GroupCommitOptions> {
  /**
   * Called after each commit that appended events, with their categories. Wakes relays and
   * projections; must not throw.
   */
  readonly onAppended?: (categories: ReadonlySet<string>) => void;
  /**
   * Time within which a batch is sent again after its connection broke, ms. Its event ids show
   * whether it was committed.
   */
  readonly resolveWithinMs?: number;
}

/** Methods of the PostgreSQL adapter beyond the port. */
export interface EventStorePg {
  /**
   * Appends inside the caller's transaction (read committed) and returns the outcome of each
   * request; the caller decides whether to commit. Call it once, as the transaction's last
   * statement: it takes the log's head lock, which every other append waits for. It notifies no
   * reader: call `notifyAppended` after the commit.
   */
  appendWithin(client: pg.ClientBase, requests: readonly AppendRequest[]): Promise<AppendOutcome[]>;
  /**
   * Returns the parameters of `appendSql`, for a transaction that is one statement. The call must
   * take the statement's last locks. The statement must fail when `outcomes` is not null. It also
   * fails when an event id is in the log.
   */
  appendParams(requests: readonly AppendRequest[]): unknown[];
  /**
   * Wakes relays and projections after a transaction that used `appendWithin` or `appendSql`, with
   * the categories of its events.
   */
  notifyAppended(...categories: readonly string[]): void;
  /** Returns the log's epoch. A restore raises it; cursors of another epoch are void. */
  logEpoch(): Promise<number>;
  /** Settles waiting appends and rejects later ones. The pool stays open: the caller owns it. */
  close(): Promise<void>;
}

const DEFAULTS: GroupCommitOptions = {
  maxRequests: 256,
  maxEvents: 2_000,
  maxBytes: 8 * 1024 * 1024,
  maxQueued: 10_000,
  maxQueuedBytes: 64 * 1024 * 1024,
};

const prepareBatch = (requests: readonly AppendRequest[]): PreparedAppend[] => {
  const prepared = requests.map(prepareAppend);
  const keys = prepared.flatMap(({ exclusiveKeys }) => exclusiveKeys);
  if (new Set(keys).size !== keys.length)
    throw invalid('LOG.INVALID', 'requests of one transaction may not share a stream, an event id or a key');
  return prepared;
};

const appendWithin = async (
  client: pg.ClientBase,
  requests: readonly AppendRequest[],
): Promise<AppendOutcome[]> => {
  const prepared = prepareBatch(requests);
  if (prepared.length === 0) return [];
  return appendBatch(client, prepared, { mayRepeatEvents: true }).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
};

/**
 * Describes the span of an append, from the call to the commit; it includes the wait for a batch.
 */
const appendSpan = ({ streams }: AppendRequest): SpanStart => ({
  name: 'append',
  role: 'client',
  attributes: {
    'db.system.name': 'postgresql',
    'db.operation.name': 'append',
    'db.operation.batch.size': streams.reduce((sum, { events }) => sum + events.length, 0),
  },
});

/** Creates the log on PostgreSQL. The pool's role decides to which categories it may append. */
export const createPostgresEventStore = (
  pool: pg.Pool,
  options: PostgresEventStoreOptions = {},
): EventStore & EventStorePg => {
  const notifyAppended = (...categories: readonly string[]): void =>
    options.onAppended?.(new Set(categories));
  const flusher = new AppendFlusher(pool, options.resolveWithinMs ?? 5_000, notifyAppended);
  const group = new GroupCommit((batch) => flusher.flush(batch), { ...DEFAULTS, ...options });
  const stopObserving = observeGauges(
    { antiphon_appends_waiting: 'Appends that wait for the batch before them to be committed' },
    (report) => report('antiphon_appends_waiting', group.waiting),
  );
  return {
    append: async (request) =>
      withSpan(appendSpan(request), async () => group.append(prepareAppend(request))),
    appendWithin,
    appendParams: (requests) => appendParams(prepareBatch(requests)),
    notifyAppended,
    close: () => {
      stopObserving();
      return group.close();
    },
    ...createLogReader(pool),
  };
};
