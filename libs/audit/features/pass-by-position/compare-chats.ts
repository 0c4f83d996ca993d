import type pg from 'pg';
import { violation } from '@antiphon/audit-domain';
import type { Finding } from '@antiphon/audit-domain';
import { type CheckReport, Tally } from '../audit-report.js';
import { readRows } from '../read-log/read-log.js';

interface ChatRow {
  readonly position: string;
  readonly workspace: string;
  readonly stream_id: string;
  readonly stream_version: string;
  readonly event_id: string;
  readonly name: string;
  readonly session: string;
  readonly agent: string;
  readonly session_agent: string | null;
  readonly same_name: string;
  readonly same_session: string;
}

/** Selects the last change of a chat of a type. */
const lastSql = (
  type: 'ChatRenamed' | 'ChatDeleted',
  column: string,
): string => `(select ${column} from events e
      where e.workspace = n.workspace and e.stream_id = n.stream_id and e.type = '${type}'
      order by e.stream_version desc limit 1)`;

/**
 * Selects each chat with its session, and the number of chats that share its name or session. A
 * deleted chat shares its name with none.
 */
const chatsSql = (after: number | null): string => `select c.*, s.data ->> 'agentId' as session_agent
  from (select n.*, count(*) over (partition by workspace, coalesce(deleted, lower(name))) as same_name,
      count(*) over (partition by workspace, session) as same_session
    from (select position, workspace, stream_id, stream_version, event_id,
        coalesce(${lastSql('ChatRenamed', "e.data ->> 'name'")}, data ->> 'name') as name,
        data ->> 'sessionId' as session, data ->> 'agentId' as agent,
        ${lastSql('ChatDeleted', 'e.stream_id')} as deleted
      from events n where category = 'chat' and type = 'ChatCreated') n) c
  left join events s on s.workspace = c.workspace and s.stream_id = 'session-' || c.session
    and s.stream_version = 1 and s.type = 'SessionStarted'
  ${after === null ? '' : `where c.position > ${after}`} order by c.position`;

const messagesOf = (row: ChatRow): string[] => {
  const messages: string[] = [];
  const chat = `the chat "${row.name}"`;
  if (row.session_agent === null) messages.push(`${chat} names session ${row.session}, which never started`);
  else if (row.session_agent !== row.agent)
    messages.push(`${chat} is of agent ${row.agent}, its session of ${row.session_agent}`);
  if (row.same_name !== '1') messages.push(`${row.same_name} chats are named "${row.name}"`);
  if (row.same_session !== '1') messages.push(`${row.same_session} chats have session ${row.session}`);
  return messages;
};

const compareRow = (row: ChatRow): Finding[] => {
  const at = {
    ...{ position: Number(row.position), workspace: row.workspace, streamId: row.stream_id },
    ...{ streamVersion: Number(row.stream_version), eventId: row.event_id },
  };
  return messagesOf(row).map((message) => violation(at, message));
};

const chatsHaveOneSession = {
  name: 'chats-have-one-session',
  about: 'every chat has a name and a started session that no other chat of its workspace has',
  counts: 'chats',
};

/** Compares chats with each other and with their sessions, of all events or of new ones. */
export const compareChats = async (client: pg.ClientBase, after: number | null): Promise<CheckReport> => {
  const tally = new Tally(chatsHaveOneSession, false);
  for await (const row of readRows<ChatRow>(client, 'audit_chats', chatsSql(after))) {
    tally.count(1);
    tally.add(compareRow(row));
  }
  return tally.report();
};
