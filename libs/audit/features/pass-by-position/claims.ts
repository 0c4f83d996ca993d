import type pg from 'pg';
import { violation } from '@antiphon/audit-domain';
import type { CommandClaim, Finding } from '@antiphon/audit-domain';
import { rowsOf } from '../read-log/cursor.js';

interface ClaimRow {
  readonly workspace: string;
  readonly scope: string;
  readonly key: string;
  readonly first_position: string;
  readonly last_position: string;
  readonly turn_id: string | null;
  readonly session_id: string | null;
}

const claimsSql = (
  after: number,
): string => `select workspace, scope, key, first_position, last_position, answer->>'turnId' as turn_id,
  answer->>'sessionId' as session_id from idempotency where first_position > ${after} order by first_position, key`;

const toClaim = (row: ClaimRow): CommandClaim => ({
  workspace: row.workspace,
  scope: row.scope,
  key: row.key,
  firstPosition: Number(row.first_position),
  lastPosition: Number(row.last_position),
  turnId: row.turn_id,
  sessionId: row.session_id,
});

/** Claims of events after a position, in the order of their first ones: `upTo` gives those that begin at a position or before it. */
export const readClaims = (
  client: pg.ClientBase,
  after: number,
): { upTo(position: number): Promise<CommandClaim[]> } => {
  const rows = rowsOf<ClaimRow>(client, 'audit_claims', claimsSql(after));
  let next: CommandClaim | undefined;
  let started = false;
  const advance = async (): Promise<void> => {
    const row = await rows.next();
    next = row.done === true ? undefined : toClaim(row.value);
  };
  return {
    upTo: async (position) => {
      if (!started) await advance();
      started = true;
      const claims: CommandClaim[] = [];
      while (next && next.firstPosition <= position) {
        claims.push(next);
        await advance();
      }
      return claims;
    },
  };
};

const twiceSql = (
  after: number,
): string => `select min(position) as position, workspace, max(stream_id) as stream_id, data->>'turnId' as turn_id,
  count(*) as times, (array_agg(event_id order by position desc))[1] as event_id, max(position) as last
  from events where type = 'TurnRequested' and position > ${after} group by workspace, data->>'turnId' having count(*) > 1 order by 1 limit 10`;

interface TwiceRow {
  readonly last: string;
  readonly workspace: string;
  readonly stream_id: string;
  readonly event_id: string;
  readonly turn_id: string;
  readonly times: string;
}

/** Turns that were accepted more than once anywhere in the log after a position; the database groups them, so nothing is kept here. */
export const turnsAcceptedTwice = async (client: pg.ClientBase, after: number): Promise<Finding[]> => {
  const { rows } = await client.query<TwiceRow>(twiceSql(after));
  return rows.map((row) =>
    violation(
      {
        position: Number(row.last),
        workspace: row.workspace,
        streamId: row.stream_id,
        streamVersion: 0,
        eventId: row.event_id,
      },
      `turn ${row.turn_id} was accepted ${row.times} times`,
    ),
  );
};
