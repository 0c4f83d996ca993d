import type pg from 'pg';
import { isTurnEnd } from '@antiphon/contracts/agent';
import { translateDatabaseError } from '@antiphon/database';
import type { RecordedEvent } from '@antiphon/event-store';

/** Changes that a batch of the log makes to the row of one session. */
interface SessionChange {
  readonly workspace: string;
  readonly sessionId: string;
  sessionKey: string;
  agentId: string;
  startedAt: string;
  turns: number;
  openTurns: number;
  lastPosition: number;
}

const STREAM_PREFIX = 'session-';

const emptyChange = ({ workspace, streamId, recordedAt, position }: RecordedEvent): SessionChange => ({
  workspace,
  sessionId: streamId.slice(STREAM_PREFIX.length),
  sessionKey: '',
  agentId: '',
  startedAt: recordedAt,
  turns: 0,
  openTurns: 0,
  lastPosition: position,
});

const CHANGES: Readonly<Record<string, (change: SessionChange, data: RecordedEvent['data']) => void>> = {
  SessionStarted: (change, { sessionKey, agentId, startedAt }) =>
    void Object.assign(change, { sessionKey, agentId, startedAt }),
  TurnRequested: (change) => {
    change.turns++;
    change.openTurns++;
  },
};

const endTurn = (change: SessionChange): void => void change.openTurns--;

/** Returns the changes of a batch, one for each session in it. Pure. */
export const sessionChanges = (events: readonly RecordedEvent[]): readonly Readonly<SessionChange>[] => {
  const changes = new Map<string, SessionChange>();
  for (const event of events) {
    const apply = isTurnEnd(event.type) ? endTurn : CHANGES[event.type];
    if (!apply) continue;
    const key = `${event.workspace}/${event.streamId}`;
    const change = changes.get(key) ?? emptyChange(event);
    changes.set(key, change);
    apply(change, event.data);
    change.lastPosition = event.position;
  }
  return [...changes.values()];
};

/** Inserts a session's row, or adds the changes to the sums of the existing one. */
const UPSERT_SQL = `insert into agent_sessions as s
    (workspace, session_id, session_key, agent_id, started_at, turns, open_turns, last_position)
  select * from unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::timestamptz[], $6::bigint[], $7::integer[], $8::bigint[])
  on conflict (workspace, session_id) do update set
    turns = s.turns + excluded.turns, open_turns = s.open_turns + excluded.open_turns,
    last_position = excluded.last_position`;

/** Applies a batch of the log to `agent_sessions`, in the transaction that moves the checkpoint. */
export const projectAgentSessions = async (
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<void> => {
  const changes = sessionChanges(events);
  if (changes.length === 0) return;
  const values = [
    changes.map(({ workspace }) => workspace),
    changes.map(({ sessionId }) => sessionId),
    changes.map(({ sessionKey }) => sessionKey),
    changes.map(({ agentId }) => agentId),
    changes.map(({ startedAt }) => startedAt),
    changes.map(({ turns }) => turns),
    changes.map(({ openTurns }) => openTurns),
    changes.map(({ lastPosition }) => lastPosition),
  ];
  try {
    await client.query({ name: 'agent_project_sessions', text: UPSERT_SQL, values });
  } catch (error) {
    throw translateDatabaseError(error);
  }
};
