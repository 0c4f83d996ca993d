import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import { invalid } from '@antiphon/kernel';
import { observeGauges, withSpan } from '@antiphon/observability';
import type { SpanStart } from '@antiphon/observability';
import { appendBatch, appendParams } from './append/append-batch.js';
import { createFlush } from './append/append-flush.js';
import type { AppendOutcome } from './append/append-outcome.js';
import type { AppendRequest, EventStore } from './event-store.port.js';
import { createGroupCommit, type GroupCommitOptions } from './append/group-commit.js';
import { createLogReader } from './read/log-reader.js';
import { prepareAppend } from './append/prepare-append.js';
import type { PreparedAppend } from './append/prepare-append.js';

export interface PostgresEventStoreOptions extends Partial<GroupCommitOptions> {
  /** Called after each commit that wrote something: wakes relays and projections. It must not throw. */
  readonly onAppended?: () => void;
  /** How long a batch whose connection broke is asked for again (its event ids tell whether it was committed). */
  readonly resolveWithinMs?: number;
}

/** What the PostgreSQL adapter can do beyond the port. */
export interface EventStorePg {
  /**
   * Appends inside the caller's transaction (read committed) and answers each request's outcome; the caller
   * decides whether to commit. It must be the transaction's last step and happen once, because it takes the log's
   * head lock, which every other append waits for. Nothing is announced: call `announce` after the commit.
   */
  appendWithin(client: pg.ClientBase, requests: readonly AppendRequest[]): Promise<AppendOutcome[]>;
  /**
   * The same for a single statement that does all of a transaction: the parameters of `appendSql`. The statement must
   * fail where `outcomes` are not null, and the call stand last in what it locks; a known event id fails it as well.
   */
  appendParams(requests: readonly AppendRequest[]): unknown[];
  /** Wakes relays and projections after a transaction that used `appendWithin` or `appendSql`. */
  notifyAppended(): void;
  /** The log's epoch, which a restore raises; cursors of another epoch are void. */
  logEpoch(): Promise<number>;
  /** Answers what waits, then refuses. The pool stays open: it is the caller's. */
  close(): Promise<void>;
}

const DEFAULTS: GroupCommitOptions = {
  maxRequests: 256,
  maxEvents: 2_000,
  maxBytes: 8 * 1024 * 1024,
  maxQueued: 10_000,
  maxQueuedBytes: 64 * 1024 * 1024,
};

const prepareApart = (requests: readonly AppendRequest[]): PreparedAppend[] => {
  const prepared = requests.map(prepareAppend);
  const claims = prepared.flatMap((one) => one.claims);
  if (new Set(claims).size !== claims.length)
    throw invalid('LOG.INVALID', 'requests of one transaction may not share a stream, an event id or a key');
  return prepared;
};

const appendWithin = async (
  client: pg.ClientBase,
  requests: readonly AppendRequest[],
): Promise<AppendOutcome[]> => {
  const prepared = prepareApart(requests);
  if (prepared.length === 0) return [];
  return appendBatch(client, prepared, true).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
};

/** From when it is asked for until it is committed, the wait for the batch before it included. */
const spanOf = ({ streams }: AppendRequest): SpanStart => ({
  name: 'append',
  role: 'client',
  attributes: {
    'db.system.name': 'postgresql',
    'db.operation.name': 'append',
    'db.operation.batch.size': streams.reduce((sum, { events }) => sum + events.length, 0),
  },
});

/** The log on PostgreSQL. The pool's role decides to which categories it may append. */
export const createPostgresEventStore = (
  pool: pg.Pool,
  options: PostgresEventStoreOptions = {},
): EventStore & EventStorePg => {
  const announce = (): void => options.onAppended?.();
  const flush = createFlush(pool, options.resolveWithinMs ?? 5_000, announce);
  const group = createGroupCommit(flush, { ...DEFAULTS, ...options });
  const unobserve = observeGauges(
    { antiphon_appends_waiting: 'Appends that wait for the batch before them to be committed' },
    (report) => report('antiphon_appends_waiting', group.waiting()),
  );
  return {
    append: async (request) => withSpan(spanOf(request), async () => group.append(prepareAppend(request))),
    appendWithin,
    appendParams: (requests) => appendParams(prepareApart(requests)),
    notifyAppended: announce,
    close: () => {
      unobserve();
      return group.close();
    },
    ...createLogReader(pool),
  };
};
