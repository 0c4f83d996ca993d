import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import type { RecordedEvent } from '@antiphon/event-store';

const ENDS: ReadonlySet<string> = new Set(['ModelCallCompleted', 'ModelCallAborted']);

const isGeneration = ({ type, data }: RecordedEvent): boolean =>
  ENDS.has(type) && typeof data['generationId'] === 'string';

const INSERT_SQL = `insert into agent_generations
    (workspace, position, reservation_id, provider, model, generation_id, at)
  select * from unnest($1::text[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])`;

/** Adds a row to `agent_generations` for each call whose vendor tells its usage later. */
export const projectGenerations = async (
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<void> => {
  const calls = events.filter(isGeneration);
  if (calls.length === 0) return;
  const column = (name: string): string[] => calls.map(({ data }) => String(data[name]));
  const values = [
    calls.map(({ workspace }) => workspace),
    calls.map(({ position }) => position),
    ...['reservationId', 'provider', 'model', 'generationId'].map(column),
    calls.map(({ recordedAt }) => recordedAt),
  ];
  try {
    await client.query({ name: 'agent_project_generations', text: INSERT_SQL, values });
  } catch (error) {
    throw translateDatabaseError(error);
  }
};
