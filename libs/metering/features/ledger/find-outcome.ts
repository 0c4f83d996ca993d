import { ModelCallAborted, ModelCallCompleted, sessionStream } from '@antiphon/contracts/agent';
import type { SessionEventOf } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { REFUSED, type CallOutcome } from '@antiphon/contracts/metering';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import { readBackwards } from '@antiphon/event-store';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';
import type { Reservation } from '@antiphon/metering-domain';
import type pg from 'pg';

export type CallEnd = SessionEventOf<'ModelCallCompleted' | 'ModelCallAborted'>;

type Aborted = Pick<
  SessionEventOf<'ModelCallAborted'>['data'],
  'dispatched' | 'refused' | 'reason' | 'usage'
>;

/** Returns the outcome of an aborted attempt for its reservation. */
export const outcomeOfAborted = ({ dispatched, refused, reason, usage }: Aborted): CallOutcome => {
  if (!dispatched) return { kind: 'not_dispatched', reason };
  if (refused && usage === null) return { kind: 'not_dispatched', reason: REFUSED };
  // Usage reported by the provider is charged, also for a failed call.
  return usage === null ? { kind: 'unknown' } : { kind: 'used', ...usage };
};

/** Returns the outcome of a model attempt for its reservation. */
export const outcomeOfCall = (event: CallEnd): CallOutcome => {
  if (event.type === 'ModelCallCompleted') return { kind: 'used', ...event.data.usage };
  return outcomeOfAborted(event.data);
};

export interface OpenRow extends OpenReservation {
  readonly expired: boolean;
}

interface Row {
  readonly workspace: string;
  readonly reservation_id: string;
  readonly session_id: string;
  readonly attempt: number;
  readonly expired: boolean;
}

interface StatusRow extends Row {
  readonly status: Exclude<Reservation['status'], 'none'>;
  readonly corrected: boolean;
}

const COLUMNS = 'workspace, reservation_id, session_id, attempt';
const OF_SCOPE_SQL = `select ${COLUMNS}, open_until <= $4::timestamptz as expired from budget_reservations
  where workspace = $1 and open_until is not null and $2 = any (scope_keys) order by open_until limit $3`;
const ONE_SQL = `select ${COLUMNS}, false as expired from budget_reservations
  where workspace = $1 and reservation_id = $2 and open_until is not null`;
const ANY_SQL = `select ${COLUMNS}, false as expired, status, corrected from budget_reservations
  where workspace = $1 and reservation_id = $2`;
const LONGEST_SQL = `(select ${COLUMNS}, true as expired from budget_reservations
    where open_until <= $1::timestamptz order by open_until limit $2)
  union all
  (select ${COLUMNS}, false from budget_reservations
    where open_until > $1::timestamptz order by open_until limit $3)`;

const toOpen = (row: Row): OpenRow => ({
  workspace: row.workspace,
  reservationId: row.reservation_id,
  sessionId: row.session_id,
  attempt: row.attempt,
  expired: row.expired,
});

const readRows = async <R extends Row>(
  pool: pg.Pool,
  name: string,
  text: string,
  values: unknown[],
): Promise<R[]> => {
  try {
    return (await acrossWorkspaces(pool).query<R>({ name, text, values })).rows;
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

const read = async (pool: pg.Pool, name: string, text: string, values: unknown[]): Promise<OpenRow[]> =>
  (await readRows<Row>(pool, name, text, values)).map(toOpen);

/** Returns the open reservations of a scope, oldest expiry first. `now` is ISO 8601. */
export const openInScope = (
  pool: pg.Pool,
  workspace: string,
  scopeKey: string,
  now: string,
  limit: number,
): Promise<OpenRow[]> => read(pool, 'budget_open_in_scope', OF_SCOPE_SQL, [workspace, scopeKey, limit, now]);

/** Returns the open reservations of all workspaces: expired ones, and those that expire soonest. */
export const openLongest = (
  pool: pg.Pool,
  now: string,
  expired: number,
  others: number,
): Promise<OpenRow[]> => read(pool, 'budget_open_longest', LONGEST_SQL, [now, expired, others]);

/** Returns a reservation if it is open. */
export const openOne = async (
  pool: pg.Pool,
  workspace: string,
  reservationId: string,
): Promise<OpenRow | undefined> =>
  (await read(pool, 'budget_open_one', ONE_SQL, [workspace, reservationId]))[0];

/** A reservation in any state, and whether no outcome can change it any more. */
export interface KnownReservation extends OpenReservation {
  readonly status: Exclude<Reservation['status'], 'none'>;
  readonly isFinal: boolean;
}

/** Returns whether no outcome can change a reservation any more. */
export const isFinal = (status: KnownReservation['status'], corrected: boolean): boolean =>
  status === 'settled' || (status !== 'reserved' && corrected);

/** Returns a reservation in any state. */
export const findReservation = async (
  pool: pg.Pool,
  workspace: string,
  reservationId: string,
): Promise<KnownReservation | undefined> => {
  const [row] = await readRows<StatusRow>(pool, 'budget_any', ANY_SQL, [workspace, reservationId]);
  return row && { ...toOpen(row), status: row.status, isFinal: isFinal(row.status, row.corrected) };
};

export interface OpenReservation {
  readonly workspace: string;
  readonly reservationId: string;
  readonly sessionId: string;
  readonly attempt: number;
}

/** Events of the first page, in which the end of a recent attempt is. */
const FIRST_PAGE = 8;
const PAGE = 64;

const attemptOf = ({ data }: RecordedEvent): number | undefined =>
  typeof data['attempt'] === 'number' ? data['attempt'] : undefined;

const isEndOf = (event: RecordedEvent, reservationId: string): boolean =>
  (event.type === 'ModelCallCompleted' || event.type === 'ModelCallAborted') &&
  event.data['reservationId'] === reservationId;

const parse = (recorded: RecordedEvent): CallEnd => {
  const event = upcast(recorded);
  return event.type === 'ModelCallCompleted'
    ? ModelCallCompleted.parse(event)
    : ModelCallAborted.parse(event);
};

/**
 * Returns the state at the attempt's start. Attempts only grow, so no earlier event can be its end.
 */
const stateAtStart = (
  event: RecordedEvent,
  { reservationId, attempt }: OpenReservation,
): CallState | undefined => {
  const own = attemptOf(event);
  if (own === attempt && event.type === 'ModelCallStarted')
    return event.data['reservationId'] === reservationId ? 'running' : 'superseded';
  return own !== undefined && own < attempt ? 'never_started' : undefined;
};

/**
 * `never_started`: no call in the log cites the reservation, which was requested during the commit
 * of the start. `superseded`: no call will cite it, because its attempt started with another
 * reservation.
 */
export type CallState = 'running' | 'never_started' | 'superseded';

/** Searches the session's event stream, newest first, for the end of a reservation's attempt. */
export const findCallEnd = async (store: EventStore, open: OpenReservation): Promise<CallEnd | CallState> => {
  const { workspace, reservationId, sessionId } = open;
  const stream = sessionStream(sessionId);
  for await (const event of readBackwards(store, workspace, stream, PAGE, FIRST_PAGE)) {
    if (isEndOf(event, reservationId)) return parse(event);
    const state = stateAtStart(event, open);
    if (state) return state;
  }
  return 'never_started';
};

/** Searches the log for the outcome of a reservation's attempt. */
export const findOutcome = async (
  store: EventStore,
  open: OpenReservation,
): Promise<CallOutcome | CallState> => {
  const found = await findCallEnd(store, open);
  return typeof found === 'string' ? found : outcomeOfCall(found);
};
