import type pg from 'pg';
import type { DeliveryState, DeliveryView } from '@antiphon/contracts/agent';
import { acrossWorkspaces, inTransaction, translateDatabaseError } from '@antiphon/database';
import type { DeliveryRef } from '../delivery/delivery-streams.js';

interface Row {
  readonly message_id: string;
  readonly channel: string;
  readonly peer: string | null;
  readonly state: DeliveryState;
  readonly code: string | null;
  readonly attempts: number;
  readonly received_at: Date;
  readonly changed_at: Date;
  readonly first_position: string;
}

const LIST_SQL = `select message_id, channel, peer, state, code, attempts, received_at, changed_at, first_position
  from agent_channel_deliveries
  where workspace = $1 and ($2::text is null or channel = $2) and ($3::text[] is null or state = any ($3))
    and ($4::bigint is null or first_position < $4)
  order by first_position desc limit $5`;

export interface DeliveryFilter {
  readonly workspace: string;
  readonly channel?: string | undefined;
  readonly states?: readonly DeliveryState[] | undefined;
  readonly before?: number | undefined;
  readonly limit: number;
}

const toView = (row: Row): DeliveryView => ({
  ...{ messageId: row.message_id, channel: row.channel, peer: row.peer, state: row.state, code: row.code },
  ...{ attempts: row.attempts, receivedAt: row.received_at.toISOString() },
  changedAt: row.changed_at.toISOString(),
});

/** Lists deliveries of a workspace, newest first, with the position for the next page. */
export const readDeliveries = async (
  pool: pg.Pool,
  { workspace, channel, states, before, limit }: DeliveryFilter,
): Promise<{ deliveries: DeliveryView[]; before: number | null }> => {
  const values = [workspace, channel ?? null, states ?? null, before ?? null, limit];
  const { rows } = await inTransaction(
    pool,
    (client) => client.query<Row>({ name: 'agent_list_channel_deliveries', text: LIST_SQL, values }),
    workspace,
  );
  const last = rows.length < limit ? undefined : rows.at(-1);
  return { deliveries: rows.map(toView), before: last === undefined ? null : Number(last.first_position) };
};

const PAGE = 500;
const OPEN_SQL = `select workspace, message_id, first_position from agent_channel_deliveries
  where state in ('received', 'answering', 'queued', 'sending') and first_position > $1
  order by first_position limit $2`;

/** Yields the deliveries that are not at their end, oldest first. */
export async function* readOpenDeliveries(pool: pg.Pool): AsyncGenerator<DeliveryRef> {
  let after = '0';
  for (;;) {
    const query = { name: 'agent_open_channel_deliveries', text: OPEN_SQL, values: [after, PAGE] };
    const { rows } = await acrossWorkspaces(pool)
      .query<{ workspace: string; message_id: string; first_position: string }>(query)
      .catch((error: unknown) => {
        throw translateDatabaseError(error);
      });
    for (const row of rows) yield { workspace: row.workspace, messageId: row.message_id };
    if (rows.length < PAGE) return;
    after = rows.at(-1)?.first_position ?? after;
  }
}
