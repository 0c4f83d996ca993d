import type pg from 'pg';
import { violation } from '@antiphon/audit-domain';
import type { CommandClaim, Finding } from '@antiphon/audit-domain';
import { readRows } from '../read-log/read-log.js';

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

/** Reads the claims of events after a position, in the order of their first positions. */
export class ClaimReader {
  private readonly rows: AsyncGenerator<ClaimRow, void, undefined>;
  private next: CommandClaim | undefined;
  private hasStarted = false;

  constructor(client: pg.ClientBase, after: number) {
    this.rows = readRows<ClaimRow>(client, 'audit_claims', claimsSql(after));
  }

  /** Returns the next claims whose first position is not after `position`. */
  async readUpTo(position: number): Promise<CommandClaim[]> {
    if (!this.hasStarted) await this.advance();
    this.hasStarted = true;
    const claims: CommandClaim[] = [];
    while (this.next && this.next.firstPosition <= position) {
      claims.push(this.next);
      await this.advance();
    }
    return claims;
  }

  private async advance(): Promise<void> {
    const row = await this.rows.next();
    this.next = row.done === true ? undefined : toClaim(row.value);
  }
}

const repeatedTurnsSql = (
  after: number,
): string => `select min(position) as position, workspace, max(stream_id) as stream_id, data->>'turnId' as turn_id,
  count(*) as times, (array_agg(event_id order by position desc))[1] as event_id, max(position) as last
  from events where type = 'TurnRequested' and position > ${after} group by workspace, data->>'turnId' having count(*) > 1 order by 1 limit 10`;

interface RepeatedTurnRow {
  readonly last: string;
  readonly workspace: string;
  readonly stream_id: string;
  readonly event_id: string;
  readonly turn_id: string;
  readonly times: string;
}

/** Finds turns that were accepted more than once after a position. The database groups them. */
export const findRepeatedTurns = async (client: pg.ClientBase, after: number): Promise<Finding[]> => {
  const { rows } = await client.query<RepeatedTurnRow>(repeatedTurnsSql(after));
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
