import type pg from 'pg';
import type { JsonObject } from '@antiphon/kernel';
import type { AppendResult, IdempotencyClaim } from '../event-store.port.js';
import {
  type AppendOutcome,
  createAppendResult,
  createRejection,
  type OutcomeName,
  type RejectionDetail,
} from './append-outcome.js';
import { appendSingleEvent } from './append-event.js';
import { AppendStatement, assignParameters } from './append-statement.js';
import type { PlacedFence } from './append-statement.js';
import type { PreparedAppend, PreparedEvent, PreparedStream } from './prepare-append.js';

/** One stream of one request. `request` and `first` (its first event in the batch) count from 1. */
interface BatchStream {
  readonly request: number;
  readonly workspace: string;
  readonly stream: PreparedStream;
  readonly first: number;
}
type BatchFence = PlacedFence & { readonly request: number };
type BatchClaim = Omit<IdempotencyClaim, 'response'> & {
  readonly request: number;
  readonly workspace: string;
  /** JSON text. */
  readonly response: string | null;
};

/** A batch as the tables that `antiphon_append` takes. */
interface BatchTables {
  /** False while no event id of the batch can be in the log; then the function skips that check. */
  readonly mayRepeatEvents: boolean;
  /**
   * In lock order: every append locks streams by workspace and id, so that none deadlocks. Guards
   * follow as streams without events, which are not locked.
   */
  readonly streams: readonly BatchStream[];
  /** In the order of the requests. */
  readonly events: readonly PreparedEvent[];
  /** In lock order. */
  readonly fences: readonly BatchFence[];
  readonly claims: readonly BatchClaim[];
}

/** Returns one column of a table; null for an empty table, which the function then skips. */
const columnOf = <Row>(rows: readonly Row[], valueOf: (row: Row) => unknown): unknown[] | null =>
  rows.length === 0 ? null : rows.map(valueOf);

/**
 * Arguments of `antiphon_append` by their SQL names, each with its value. The statement and its
 * parameters are both generated from this list, so their order cannot differ. The columns of JSON
 * text travel as one joined text each: RFC 8785 text has no line feeds, and an array costs more.
 */
const APPEND_ARGUMENTS: Readonly<Record<string, (tables: BatchTables) => unknown>> = {
  p_careful: ({ mayRepeatEvents }) => mayRepeatEvents,
  p_request: ({ streams }) => columnOf(streams, ({ request }) => request),
  p_workspace: ({ streams }) => columnOf(streams, ({ workspace }) => workspace),
  p_stream: ({ streams }) => columnOf(streams, ({ stream }) => stream.streamId),
  p_expected: ({ streams }) => columnOf(streams, ({ stream }) => stream.expectedVersion),
  p_first: ({ streams }) => columnOf(streams, ({ first }) => first),
  p_count: ({ streams }) => columnOf(streams, ({ stream }) => stream.events.length),
  p_event_id: ({ events }) => columnOf(events, ({ eventId }) => eventId),
  p_type: ({ events }) => columnOf(events, ({ type }) => type),
  p_schema_version: ({ events }) => columnOf(events, ({ schemaVersion }) => schemaVersion),
  p_data: ({ events }) => events.map(({ data }) => data).join('\n'),
  p_metadata: ({ events }) => events.map(({ metadata }) => metadata).join('\n'),
  p_fence_request: ({ fences }) => columnOf(fences, ({ request }) => request),
  p_fence_workspace: ({ fences }) => columnOf(fences, ({ workspace }) => workspace),
  p_fence_lease: ({ fences }) => columnOf(fences, ({ lease }) => lease),
  p_fence_epoch: ({ fences }) => columnOf(fences, ({ epoch }) => epoch),
  p_claim_request: ({ claims }) => columnOf(claims, ({ request }) => request),
  p_claim_workspace: ({ claims }) => columnOf(claims, ({ workspace }) => workspace),
  p_claim_scope: ({ claims }) => columnOf(claims, ({ scope }) => scope),
  p_claim_key: ({ claims }) => columnOf(claims, ({ key }) => key),
  p_claim_digest: ({ claims }) => columnOf(claims, ({ digest }) => digest),
  p_claim_answer: ({ claims }) => columnOf(claims, ({ response }) => response),
};

/** Names of the arguments that a caller of `antiphon_append` must pass. */
export const APPEND_ARGUMENT_NAMES: readonly string[] = Object.keys(APPEND_ARGUMENTS);
const [FLAG_NAME = '', ...TABLE_NAMES] = APPEND_ARGUMENT_NAMES;
const VALUES = Object.values(APPEND_ARGUMENTS);
const TABLE_VALUES = VALUES.slice(1);

const toStreams = (batch: readonly PreparedAppend[]): BatchStream[] => {
  let first = 1;
  return batch.flatMap(({ request: { workspace }, streams }, index) =>
    streams.map((stream) => {
      const row = { request: index + 1, workspace, stream, first };
      first += stream.events.length;
      return row;
    }),
  );
};

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const sortForLocks = (streams: readonly BatchStream[]): readonly BatchStream[] =>
  streams.length === 1
    ? streams
    : streams.toSorted(
        (a, b) => compare(a.workspace, b.workspace) || compare(a.stream.streamId, b.stream.streamId),
      );

const toGuards = (batch: readonly PreparedAppend[]): BatchStream[] =>
  batch.flatMap(({ request: { workspace, guards = [] } }, index) =>
    guards.map(({ streamId, version }) => {
      const stream = { streamId, category: '', expectedVersion: version, events: [] };
      return { request: index + 1, workspace, stream, first: 1 };
    }),
  );

const toFences = (batch: readonly PreparedAppend[]): BatchFence[] =>
  batch
    .flatMap(({ request: { fence, workspace } }, index) =>
      fence ? [{ ...fence, workspace: fence.workspace ?? workspace, request: index + 1 }] : [],
    )
    .sort((a, b) => compare(a.workspace, b.workspace) || compare(a.lease, b.lease));

const toClaims = (batch: readonly PreparedAppend[]): BatchClaim[] =>
  batch.flatMap(({ request: { idempotency, workspace }, response }, index) =>
    idempotency ? [{ ...idempotency, response, workspace, request: index + 1 }] : [],
  );

const toTables = (
  batch: readonly PreparedAppend[],
  streams: readonly BatchStream[],
  mayRepeatEvents: boolean,
): BatchTables => ({
  mayRepeatEvents,
  streams: [...streams, ...toGuards(batch)],
  events: batch.flatMap((append) => append.streams.flatMap((stream) => stream.events)),
  fences: toFences(batch),
  claims: toClaims(batch),
});

/**
 * Returns SQL that calls `antiphon_append` within a larger statement. Its column `outcomes` is null
 * when every request was appended. The parameters of `EventStorePg.appendParams` begin at number
 * `firstParameter`. The SQL of `mayRepeatEvents` is true if event ids may be in the log.
 */
export const appendSql = (firstParameter: number, mayRepeatEvents: string): string =>
  `antiphon_append(${FLAG_NAME} => ${mayRepeatEvents}, ${assignParameters(TABLE_NAMES, firstParameter)})`;

/**
 * Returns the parameters of `appendSql`. No two requests may share a stream, an event id or an
 * idempotency key.
 */
export const appendParams = (batch: readonly PreparedAppend[]): unknown[] => {
  const tables = toTables(batch, sortForLocks(toStreams(batch)), false);
  return TABLE_VALUES.map((valueOf) => valueOf(tables));
};

/** Result of `antiphon_append`. The arrays per request are null when every request was appended. */
interface AppendRow {
  /** Position before the batch. */
  readonly base: string;
  /** Version of each stream before the batch, in lock order. */
  readonly heads: readonly (string | null)[];
  readonly outcomes: readonly (OutcomeName | null)[] | null;
  readonly firsts: readonly (string | null)[] | null;
  readonly lasts: readonly (string | null)[] | null;
  readonly details: readonly (Detail | null)[] | null;
  /** Results of extensions, one element a request. */
  readonly extensions?: readonly (JsonObject | null)[] | null;
}
type Detail = RejectionDetail & { readonly answer?: JsonObject; readonly versions?: readonly number[] };

const toResult = (
  row: AppendRow,
  index: number,
  streams: readonly BatchStream[],
  versionAfter: ReadonlyMap<number, number>,
): AppendResult => {
  const detail = row.details?.[index];
  const start = Number(row.base) + (streams[0] as BatchStream).first;
  const length = streams.reduce((sum, { stream }) => sum + stream.events.length, 0);
  return createAppendResult(
    (row.outcomes?.[index] ?? 'appended') as AppendResult['outcome'],
    detail?.versions ?? streams.map(({ first }) => versionAfter.get(first) as number),
    Number(row.firsts?.[index] ?? start),
    Number(row.lasts?.[index] ?? start + length - 1),
    detail?.answer,
    row.extensions?.[index] ?? undefined,
  );
};

const ACCEPTED: ReadonlySet<OutcomeName> = new Set(['appended', 'duplicate', 'joined']);

const toOutcomes = (
  row: AppendRow,
  batch: readonly PreparedAppend[],
  streams: readonly BatchStream[],
  inLockOrder: readonly BatchStream[],
): AppendOutcome[] => {
  const versionAfter = new Map(
    inLockOrder.map(({ first, stream }, index) => [first, Number(row.heads[index]) + stream.events.length]),
  );
  const streamsOf = Map.groupBy(streams, ({ request }) => request);
  return batch.map(({ request }, index): AppendOutcome => {
    const outcome = row.outcomes?.[index] ?? 'appended';
    return ACCEPTED.has(outcome)
      ? { ok: true, result: toResult(row, index, streamsOf.get(index + 1) ?? [], versionAfter) }
      : { ok: false, error: createRejection(outcome, request, row.details?.[index] ?? {}) };
  });
};

export interface AppendBatchOptions {
  /** False while no event id of the batch can be in the log. */
  readonly mayRepeatEvents: boolean;
  /** Maximum wait for one lock, ms; by default the connection's. Only outside of a transaction. */
  readonly lockTimeoutMs?: number | undefined;
}

/**
 * Appends a batch in one call of `antiphon_append`, or of `antiphon_append_event` where that does.
 * Returns the outcome of each request, in order. No two requests may share a stream, an event id or
 * an idempotency key. Rejects with the error of `pg`. Unless `mayRepeatEvents`, an event id that is
 * in the log is a unique violation.
 */
export const appendBatch = async (
  client: pg.Pool | pg.ClientBase,
  batch: readonly PreparedAppend[],
  { mayRepeatEvents, lockTimeoutMs }: AppendBatchOptions,
): Promise<AppendOutcome[]> => {
  const single = mayRepeatEvents ? null : await appendSingleEvent(client, batch, lockTimeoutMs);
  if (single) return [single];
  const streams = toStreams(batch);
  const inLockOrder = sortForLocks(streams);
  const tables = toTables(batch, inLockOrder, mayRepeatEvents);
  const values = VALUES.map((valueOf) => valueOf(tables));
  const statement = new AppendStatement(values, APPEND_ARGUMENT_NAMES)
    .acquire(tables.fences)
    .extend(batch)
    .storeBlobs(batch);
  if (lockTimeoutMs !== undefined) statement.limitWaits(lockTimeoutMs);
  const { rows } = await client.query<AppendRow>(statement.query());
  return toOutcomes(rows[0] as AppendRow, batch, streams, inLockOrder);
};
