import type pg from 'pg';
import { ChannelMessageEvent } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { translateDatabaseError } from '@antiphon/database';
import type { ProjectionDefinition, RecordedEvent } from '@antiphon/event-store';

/** A row of `agent_channel_deliveries`. Times stay texts, so that a row is saved as it was read. */
interface DeliveryRow {
  readonly workspace: string;
  readonly message_id: string;
  readonly channel: string;
  readonly peer: string | null;
  readonly state: string;
  readonly code: string | null;
  readonly attempts: number;
  readonly parts: number;
  readonly received_at: string;
  readonly changed_at: string;
  readonly first_position: string;
}

const keyOf = (workspace: string, messageId: string): string => `${workspace}\n${messageId}`;

const STATES = {
  ChannelMessageReceived: 'received',
  ChannelMessageRefused: 'refused',
  ChannelDeliveryFailed: 'unreadable',
  ChannelApprovalQueued: 'queued',
} as const;

type FirstEvent = Extract<ChannelMessageEvent, { type: keyof typeof STATES }>;

const isFirst = (event: ChannelMessageEvent): event is FirstEvent => event.type in STATES;

const peerOf = ({ type, data }: FirstEvent): string | null => {
  if (type === 'ChannelMessageReceived' || type === 'ChannelApprovalQueued') return data.message.peer;
  return type === 'ChannelMessageRefused' ? data.peer : null;
};

const codeOf = ({ type, data }: FirstEvent): string | null => {
  if (type === 'ChannelMessageRefused') return data.reason;
  return type === 'ChannelDeliveryFailed' ? data.code : null;
};

const newRow = (event: FirstEvent, { workspace, position }: RecordedEvent): DeliveryRow => ({
  ...{ workspace, message_id: event.data.messageId, channel: event.data.channel },
  ...{ peer: peerOf(event), state: STATES[event.type], code: codeOf(event), attempts: 0 },
  parts: event.type === 'ChannelApprovalQueued' ? 1 : 0,
  ...{ received_at: event.data.at, changed_at: event.data.at, first_position: String(position) },
});

const changeOf = (row: DeliveryRow, { type, data }: ChannelMessageEvent): Partial<DeliveryRow> => {
  switch (type) {
    case 'ChannelTurnStarted':
      return { state: 'answering' };
    case 'ChannelReplyQueued':
      return { state: data.parts.length === 0 ? 'sent' : 'queued', parts: data.parts.length };
    case 'ChannelReplyAttempted':
      return { state: 'sending', attempts: data.attempt };
    case 'ChannelReplyDelayed':
      return { state: 'queued', code: data.code };
    case 'ChannelReplySent': {
      const isLast = data.part + 1 >= row.parts;
      return { state: isLast ? 'sent' : 'queued', attempts: 0, code: null };
    }
    case 'ChannelReplyUnknown':
      return { state: 'unknown', code: data.code };
    case 'ChannelReplyFailed':
      return { state: 'failed', code: data.code };
    case 'ChannelReplyReplayed':
      return { state: 'queued', attempts: 0 };
    default:
      return {};
  }
};

const LOAD_SQL = `select workspace, message_id, channel, peer, state, code, attempts, parts,
    to_char(received_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as received_at,
    to_char(changed_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as changed_at, first_position
  from agent_channel_deliveries
  where (workspace, message_id) in (select * from unnest($1::text[], $2::uuid[]))`;

const SAVE_SQL = `insert into agent_channel_deliveries
    (workspace, message_id, channel, peer, state, code, attempts, parts, received_at, changed_at, first_position)
  select * from unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::integer[],
    $8::integer[], $9::timestamptz[], $10::timestamptz[], $11::bigint[])
  on conflict (workspace, message_id) do update set state = excluded.state, code = excluded.code,
    attempts = excluded.attempts, parts = excluded.parts, changed_at = excluded.changed_at`;

const COLUMNS = [
  ...(['workspace', 'message_id', 'channel', 'peer', 'state', 'code', 'attempts', 'parts'] as const),
  ...(['received_at', 'changed_at', 'first_position'] as const),
];

const load = async (
  client: pg.ClientBase,
  events: readonly (readonly [RecordedEvent, ChannelMessageEvent])[],
): Promise<Map<string, DeliveryRow>> => {
  const values = [events.map(([{ workspace }]) => workspace), events.map(([, { data }]) => data.messageId)];
  const { rows } = await client.query<DeliveryRow>({
    ...{ name: 'agent_load_channel_deliveries', text: LOAD_SQL, values },
  });
  return new Map(rows.map((row) => [keyOf(row.workspace, row.message_id), row]));
};

/** Folds events of deliveries to their rows, with two statements for a batch. */
export const projectDeliveries = async (
  client: pg.ClientBase,
  recorded: readonly RecordedEvent[],
): Promise<void> => {
  // Facts of peers have no row.
  const events = recorded.flatMap((one) => {
    const { data } = ChannelMessageEvent.safeParse(upcast(one));
    return data ? [[one, data] as const] : [];
  });
  if (events.length === 0) return;
  try {
    const rows = await load(client, events);
    for (const [at, event] of events) {
      const key = keyOf(at.workspace, event.data.messageId);
      const known = rows.get(key);
      if (known) rows.set(key, { ...known, ...changeOf(known, event), changed_at: event.data.at });
      else if (isFirst(event)) rows.set(key, newRow(event, at));
    }
    const saved = [...rows.values()];
    const values = COLUMNS.map((column) => saved.map((row) => row[column]));
    await client.query({ name: 'agent_save_channel_deliveries', text: SAVE_SQL, values });
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

/** Rows of deliveries of channels, for dead letters and for work that an ended process left. */
export const agentChannels: ProjectionDefinition = {
  name: 'agent-channels',
  service: 'agent',
  categories: ['channel'],
  tables: [{ name: 'agent_channel_deliveries' }],
  handle: projectDeliveries,
};
