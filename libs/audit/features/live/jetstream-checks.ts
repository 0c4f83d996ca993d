import { type ConsumerInfo, DeliverPolicy, jetstream, type OrderedConsumerOptions } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type pg from 'pg';
import { type Finding, open, violation } from '@antiphon/audit-domain';
import { acrossWorkspaces } from '@antiphon/database';
import { JETSTREAM_CODES, STREAMS, jetstreamErrorCode, openJetStreamManager } from '@antiphon/messaging';
import { type About, nowhere } from '../audit-report.js';
import { PLACE_COLUMNS, type PlaceRow, rowToPlace } from '../read-log/read-log.js';
import type { Poll } from './poll-within.js';

interface Found {
  readonly findings: readonly Finding[];
  readonly checked: number;
}

export const consumersKeepUp: About = {
  name: 'consumers-keep-up',
  about: 'no consumer of events has events left to take or to acknowledge',
  counts: 'consumers',
};

const listConsumers = async (nats: NatsConnection): Promise<ConsumerInfo[]> => {
  const manager = await openJetStreamManager(nats);
  const found: ConsumerInfo[] = [];
  try {
    // Consumers without a durable name belong to a present reader.
    for await (const info of manager.consumers.list(STREAMS.EVENTS.name))
      if (info.config.durable_name) found.push(info);
  } catch (error) {
    if (jetstreamErrorCode(error) !== JETSTREAM_CODES.streamNotFound) throw error;
  }
  return found;
};

const countLeft = ({ num_pending, num_ack_pending }: ConsumerInfo): number => num_pending + num_ack_pending;

/** Reports consumers with events left, as open: they are busy, or their process is away. */
export const findLaggingConsumers = async (nats: NatsConnection, poll: Poll): Promise<Found> => {
  const consumers = await poll(
    () => listConsumers(nats),
    (found) => found.every((info) => countLeft(info) === 0),
  );
  const findings = consumers
    .filter((info) => countLeft(info) > 0)
    .map((info) => open(nowhere(''), `consumer ${info.name} has ${countLeft(info)} events left`));
  return { findings, checked: consumers.length };
};

export const relayEqualsTheLog: About = {
  name: 'relay-equals-the-log',
  about: 'JetStream stores each of its events under the sequence number that is its position in the log',
  counts: 'messages',
};

/** Sequence numbers of the stream EVENTS. */
interface StoredRange {
  readonly first: number;
  readonly last: number;
  readonly deleted: number;
}

const PAGE = 1_000;
const ID_HEADER = 'Nats-Msg-Id';
const HEAD_SQL = `select greatest(coalesce(max(position), 0), (select base_position from log_head where id = 1)) as head from events`;
const PAGE_SQL = `select ${PLACE_COLUMNS} from events
  where position >= $1 and position <= $2 order by position limit ${PAGE}`;

/** Returns null if the stream does not exist. */
const readStoredRange = async (nats: NatsConnection): Promise<StoredRange | null> => {
  const manager = await openJetStreamManager(nats);
  try {
    const { state } = await manager.streams.info(STREAMS.EVENTS.name);
    return { first: state.first_seq, last: state.last_seq, deleted: state.num_deleted ?? 0 };
  } catch (error) {
    if (jetstreamErrorCode(error) === JETSTREAM_CODES.streamNotFound) return null;
    throw error;
  }
};

/** Reads message ids by sequence number. Requests headers only, without contents. */
async function* readMessageIds(nats: NatsConnection, from: number, to: number) {
  const options: Partial<OrderedConsumerOptions> = {
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: from,
    headers_only: true,
    inactive_threshold: 30_000,
  };
  const client = jetstream(nats, { checkAPI: false });
  const consumer = await client.consumers.get(STREAMS.EVENTS.name, options);
  const messages = await consumer.consume({ max_messages: PAGE });
  try {
    for await (const message of messages) {
      if (message.seq <= to) yield { seq: message.seq, id: message.headers?.get(ID_HEADER) ?? '' };
      if (message.seq >= to) return;
    }
  } finally {
    await messages.close();
  }
}

async function* readPlaces(pool: pg.Pool, from: number, to: number): AsyncGenerator<PlaceRow> {
  for (let next = from; next <= to;) {
    const { rows } = await acrossWorkspaces(pool).query<PlaceRow>(PAGE_SQL, [next, to]);
    yield* rows;
    if (rows.length < PAGE) return;
    next = Number(rows.at(-1)?.position) + 1;
  }
}

/** Reads log and stream in parallel. Skips messages whose events are archived. */
const compareContents = async (
  pool: pg.Pool,
  nats: NatsConnection,
  from: number,
  to: number,
): Promise<{ readonly findings: Finding[]; readonly compared: number }> => {
  const findings: Finding[] = [];
  let compared = 0;
  if (from > to) return { findings, compared };
  const messages = readMessageIds(nats, from, to);
  let message = await messages.next();
  for await (const row of readPlaces(pool, from, to)) {
    const at = rowToPlace(row);
    while (!message.done && message.value.seq < at.position) message = await messages.next();
    compared++;
    if (message.done || message.value.seq > at.position)
      findings.push(violation(at, 'this event is missing in JetStream'));
    else if (message.value.id !== at.eventId)
      findings.push(violation(at, `JetStream holds event ${message.value.id || '-'} in its place`));
  }
  await messages.return();
  return { findings, compared };
};

const readHead = async (pool: pg.Pool): Promise<number> =>
  Number((await acrossWorkspaces(pool).query<{ head: string }>(HEAD_SQL)).rows[0]?.head ?? 0);

const compareEnds = async (pool: pg.Pool, stored: StoredRange, head: number): Promise<Finding[]> => {
  const now = await readHead(pool);
  const at = nowhere('');
  const findings: Finding[] = [];
  if (stored.last < head)
    findings.push(open(at, `${head - stored.last} events are in the log and not yet in JetStream`));
  if (stored.last > now) {
    const message = `JetStream is at ${stored.last}, the log at ${now}: it has events that are not in the log`;
    findings.push(violation(at, message));
  }
  if (stored.deleted > 0)
    findings.push(violation(at, `${stored.deleted} messages were deleted from the middle of the stream`));
  return findings;
};

/**
 * Compares the messages in JetStream with the log, up to the log's head at the start. Polls until
 * the relay has published all events up to that head. With `after`, compares only later positions.
 */
export const compareRelay = async (
  pool: pg.Pool,
  nats: NatsConnection,
  poll: Poll,
  after: number | null,
): Promise<Found> => {
  const head = await readHead(pool);
  const stored = await poll(
    () => readStoredRange(nats),
    (range) => range !== null && range.last >= head,
  );
  if (stored === null)
    return { findings: [violation(nowhere(''), 'JetStream has no stream EVENTS')], checked: 0 };
  const ends = await compareEnds(pool, stored, head);
  const from = Math.max(stored.first, (after ?? 0) + 1);
  const { findings, compared } = await compareContents(pool, nats, from, Math.min(stored.last, head));
  return { findings: [...ends, ...findings], checked: compared };
};
