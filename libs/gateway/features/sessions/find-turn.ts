import { sessionStream } from '@antiphon/contracts/agent';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import { createLogReader, requirePosition } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';
import type { Pool } from 'pg';

/** Place of a turn in the log. */
export interface FoundTurn {
  readonly turnId: string;
  readonly sessionId: string;
  /** Position of the event that requested it. */
  readonly firstPosition: number;
}

const FIND_SQL = 'select stream_id, position from antiphon_find_turn($1)';
const PREFIX = sessionStream('');

/** Finds the session of a turn, by an index of their ids. Throws `TURN.NOT_FOUND`. */
export const findTurn = async (
  pool: Pool,
  workspace: string,
  turnId: string,
  at: number | undefined,
): Promise<FoundTurn & { position?: number; head?: number }> => {
  try {
    const { rows } = await inWorkspace(pool, workspace).query<{ stream_id: string; position: string }>(
      FIND_SQL,
      [turnId],
    );
    const [row] = rows;
    const places: { position?: number; head?: number } = at === undefined ? {} : await placesAt(pool, at);
    if (!row || Number(row.position) > (places.position ?? Infinity))
      throw notFound('TURN.NOT_FOUND', `there is no turn ${turnId}`);
    return {
      ...{ turnId, sessionId: row.stream_id.slice(PREFIX.length), firstPosition: Number(row.position) },
      ...places,
    };
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

/** Returns a position and the head of the log. Throws `LOG.POSITION_AHEAD`. */
export const placesAt = async (pool: Pool, at: number): Promise<{ position: number; head: number }> => {
  const head = await createLogReader(pool).headPosition();
  return { position: requirePosition(at, head), head };
};
