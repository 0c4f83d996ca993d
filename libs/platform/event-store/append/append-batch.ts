import type pg from 'pg';
import type { JsonObject } from '@antiphon/kernel';
import {
  type AppendOutcome,
  type OutcomeName,
  type RefusalDetail,
  refusalOf,
  resultOf,
} from './append-outcome.js';
import type { AppendResult } from '../event-store.port.js';
import type { PreparedAppend, PreparedStream } from './prepare-append.js';

/** Null arrays mean: every request was appended, and `base` and `heads` tell the rest. */
interface AppendRow {
  readonly base: string;
  readonly heads: readonly (string | null)[];
  readonly outcomes: readonly (OutcomeName | null)[] | null;
  readonly firsts: readonly (string | null)[] | null;
  readonly lasts: readonly (string | null)[] | null;
  readonly details: readonly (Detail | null)[] | null;
}
type Detail = RefusalDetail & { readonly answer?: JsonObject; readonly versions?: readonly number[] };

const PARAMETERS = 22;
const parameters = (from: number, count: number): string =>
  Array.from({ length: count }, (_, index) => `$${from + index}`).join(', ');
const APPEND_SQL = `select base, heads, outcomes, firsts, lasts, to_jsonb(details) as details
  from antiphon_append(${parameters(1, PARAMETERS)})`;

/** One stream of one request; `place` is where it comes among the locks, `first` its first event's place (from 1). */
interface PlacedStream {
  readonly request: number;
  readonly workspace: string;
  readonly stream: PreparedStream;
  readonly first: number;
}

const place = (batch: readonly PreparedAppend[]): PlacedStream[] => {
  let first = 1;
  return batch.flatMap(({ request: { workspace }, streams }, index) =>
    streams.map((stream) => {
      const placed = { request: index + 1, workspace, stream, first };
      first += stream.events.length;
      return placed;
    }),
  );
};

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const inLockOrder = (placed: readonly PlacedStream[]): PlacedStream[] =>
  placed.length === 1
    ? [...placed]
    : placed.toSorted(
        (a, b) => compare(a.workspace, b.workspace) || compare(a.stream.streamId, b.stream.streamId),
      );

const NO_FENCES = [null, null, null, null];
const fenceParams = (batch: readonly PreparedAppend[]): unknown[] => {
  const fences = batch
    .flatMap(({ request: { fence, workspace } }, index) =>
      fence ? [{ ...fence, workspace, request: index + 1 }] : [],
    )
    .sort((a, b) => compare(a.workspace, b.workspace) || compare(a.lease, b.lease));
  return fences.length === 0
    ? NO_FENCES
    : [
        fences.map(({ request }) => request),
        fences.map(({ workspace }) => workspace),
        fences.map(({ lease }) => lease),
        fences.map(({ epoch }) => epoch),
      ];
};

const NO_CLAIMS = [null, null, null, null, null, null];
const claimParams = (batch: readonly PreparedAppend[]): unknown[] => {
  const claims = batch.flatMap(({ request: { idempotency, workspace }, answer }, index) =>
    idempotency ? [{ ...idempotency, answer, workspace, request: index + 1 }] : [],
  );
  return claims.length === 0
    ? NO_CLAIMS
    : [
        claims.map(({ request }) => request),
        claims.map(({ workspace }) => workspace),
        claims.map(({ scope }) => scope),
        claims.map(({ key }) => key),
        claims.map(({ digest }) => digest),
        claims.map(({ answer }) => answer),
      ];
};

const paramsOf = (
  careful: boolean,
  batch: readonly PreparedAppend[],
  locks: readonly PlacedStream[],
): unknown[] => {
  const events = batch.flatMap(({ streams }) => streams.flatMap((stream) => stream.events));
  return [
    careful,
    locks.map(({ request }) => request),
    locks.map(({ workspace }) => workspace),
    locks.map(({ stream }) => stream.streamId),
    locks.map(({ stream }) => stream.expectedVersion),
    locks.map(({ first }) => first),
    locks.map(({ stream }) => stream.events.length),
    events.map(({ eventId }) => eventId),
    events.map(({ type }) => type),
    events.map(({ schemaVersion }) => schemaVersion),
    events.map(({ data }) => data).join('\n'),
    events.map(({ metadata }) => metadata).join('\n'),
    ...fenceParams(batch),
    ...claimParams(batch),
  ];
};

/**
 * A call of `antiphon_append` to stand in a statement that does more; its column `outcomes` is null if all went well.
 * `firstParameter`: where those of `EventStorePg.appendParams` begin; `careful`: SQL for whether event ids may be in the
 * log already.
 */
export const appendSql = (firstParameter: number, careful: string): string =>
  `antiphon_append(${careful}, ${parameters(firstParameter, PARAMETERS - 1)})`;

/** The parameters of `appendSql`. No two requests may share a stream, an event id or an idempotency key. */
export const appendParams = (batch: readonly PreparedAppend[]): unknown[] =>
  paramsOf(false, batch, inLockOrder(place(batch))).slice(1);

const resultAt = (
  row: AppendRow,
  index: number,
  streams: readonly PlacedStream[],
  after: ReadonlyMap<number, number>,
): AppendResult => {
  const detail = row.details?.[index];
  const start = Number(row.base) + (streams[0] as PlacedStream).first;
  const length = streams.reduce((sum, { stream }) => sum + stream.events.length, 0);
  return resultOf(
    (row.outcomes?.[index] ?? 'appended') as AppendResult['outcome'],
    detail?.versions ?? streams.map(({ first }) => after.get(first) as number),
    Number(row.firsts?.[index] ?? start),
    Number(row.lasts?.[index] ?? start + length - 1),
    detail?.answer,
  );
};

const STANDS: ReadonlySet<OutcomeName> = new Set(['appended', 'duplicate', 'joined']);

const outcomesOf = (
  row: AppendRow,
  batch: readonly PreparedAppend[],
  placed: readonly PlacedStream[],
  locks: readonly PlacedStream[],
): AppendOutcome[] => {
  const after = new Map(
    locks.map(({ first, stream }, index) => [first, Number(row.heads[index]) + stream.events.length]),
  );
  const streamsOf = Map.groupBy(placed, ({ request }) => request);
  return batch.map(({ request }, index): AppendOutcome => {
    const outcome = row.outcomes?.[index] ?? 'appended';
    return STANDS.has(outcome)
      ? { ok: true, result: resultAt(row, index, streamsOf.get(index + 1) ?? [], after) }
      : { ok: false, error: refusalOf(outcome, request, row.details?.[index] ?? {}) };
  });
};

/**
 * Appends a batch in one call of `antiphon_append` and answers each request's outcome, in order.
 * No two requests may share a stream, an event id or an idempotency key. Rejects with what `pg` throws; unless
 * `careful`, that includes a unique violation for an event id that is in the log already.
 */
export const appendBatch = async (
  client: pg.Pool | pg.ClientBase,
  batch: readonly PreparedAppend[],
  careful: boolean,
): Promise<AppendOutcome[]> => {
  const placed = place(batch);
  const locks = inLockOrder(placed);
  const values = paramsOf(careful, batch, locks);
  const { rows } = await client.query<AppendRow>({ name: 'antiphon_append', text: APPEND_SQL, values });
  return outcomesOf(rows[0] as AppendRow, batch, placed, locks);
};
