import type pg from 'pg';
import {
  type AppendOutcome,
  type OutcomeName,
  type RefusalDetail,
  refusalOf,
  resultOf,
} from './append-outcome.js';
import type { JsonObject } from '@antiphon/kernel';
import type { PreparedAppend } from './prepare-append.js';

interface AppendRow {
  readonly request: number;
  readonly outcome: OutcomeName;
  readonly version: string;
  readonly first_position: string | null;
  readonly last_position: string | null;
  readonly detail:
    (RefusalDetail & { readonly answer?: JsonObject; readonly versions?: readonly number[] }) | null;
}

const APPEND_SQL = `select request, outcome, version, first_position, last_position, detail from antiphon_append(
  $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`;

const paramsOf = (batch: readonly PreparedAppend[]): unknown[] => {
  const streams = batch.flatMap((prepared, index) =>
    prepared.streams.map((stream) => ({ prepared, index: index + 1, stream })),
  );
  const events = streams.flatMap(({ stream }) => stream.events);
  const numbered = batch.map(({ request, answer }, index) => ({ request, answer, index: index + 1 }));
  const fences = numbered.flatMap(({ request: { fence }, index }) => (fence ? [{ index, ...fence }] : []));
  const claims = numbered.flatMap(({ request: { idempotency }, answer, index }) =>
    idempotency ? [{ index, ...idempotency, answer }] : [],
  );
  return [
    streams.map(({ index }) => index),
    streams.map(({ prepared }) => prepared.request.workspace),
    streams.map(({ stream }) => stream.streamId),
    streams.map(({ stream }) => stream.category),
    streams.map(({ stream }) => stream.expectedVersion),
    streams.map(({ stream }) => stream.events.length),
    events.map(({ eventId }) => eventId),
    events.map(({ type }) => type),
    events.map(({ schemaVersion }) => schemaVersion),
    events.map(({ data }) => data),
    events.map(({ metadata }) => metadata),
    fences.map(({ index }) => index),
    fences.map(({ lease }) => lease),
    fences.map(({ epoch }) => epoch),
    claims.map(({ index }) => index),
    claims.map(({ scope }) => scope),
    claims.map(({ key }) => key),
    claims.map(({ digest }) => digest),
    claims.map(({ answer }) => answer),
  ];
};

const outcomeOf = ({ request }: PreparedAppend, rows: readonly AppendRow[]): AppendOutcome => {
  const { outcome, detail, first_position: first, last_position: last } = rows[0] as AppendRow;
  if (outcome !== 'appended' && outcome !== 'duplicate' && outcome !== 'joined')
    return { ok: false, error: refusalOf(outcome, request, detail ?? {}) };
  const versions = detail?.versions ?? rows.map(({ version }) => Number(version));
  return { ok: true, result: resultOf(outcome, versions, Number(first), Number(last), detail?.answer) };
};

/**
 * Appends a batch in one call of `antiphon_append` and answers each request's outcome, in order.
 * No two requests may share a stream, an event id or an idempotency key. Rejects with what `pg` throws.
 */
export const appendBatch = async (
  client: pg.Pool | pg.ClientBase,
  batch: readonly PreparedAppend[],
): Promise<AppendOutcome[]> => {
  const { rows } = await client.query<AppendRow>({
    name: 'antiphon_append',
    text: APPEND_SQL,
    values: paramsOf(batch),
  });
  const byRequest = new Map<number, AppendRow[]>();
  for (const row of rows) {
    const group = byRequest.get(row.request);
    if (group) group.push(row);
    else byRequest.set(row.request, [row]);
  }
  return batch.map((prepared, index) => outcomeOf(prepared, byRequest.get(index + 1) ?? []));
};
