import { DeliverPolicy, jetstream } from '@nats-io/jetstream';
import type { OrderedConsumerOptions } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type pg from 'pg';
import { open, violation } from '@antiphon/audit-domain';
import type { EventPlace, Finding } from '@antiphon/audit-domain';
import { JETSTREAM_CODES, STREAMS, jetstreamErrorCode, openJetStreamManager } from '@antiphon/messaging';
import { nowhere } from '../audit-report.js';
import type { About } from '../audit-report.js';
import type { Settled } from './settle.js';

export const relayEqualsTheLog: About = {
  name: 'relay-equals-the-log',
  about: 'JetStream holds each event that it keeps under the sequence number that is its position in the log',
  counts: 'messages',
};

/** Sequence numbers that JetStream keeps. */
interface Kept {
  readonly first: number;
  readonly last: number;
  readonly deleted: number;
}

const PAGE = 1_000;
const ID_HEADER = 'Nats-Msg-Id';
const HEAD_SQL = `select greatest(coalesce(max(position), 0), (select base_position from log_head where id = 1)) as head from events`;
const PAGE_SQL = `select position, event_id, workspace, stream_id, stream_version from events
  where position >= $1 and position <= $2 order by position limit ${PAGE}`;

interface Row {
  readonly position: string;
  readonly event_id: string;
  readonly workspace: string;
  readonly stream_id: string;
  readonly stream_version: string;
}

const placeOf = (row: Row): EventPlace => ({
  position: Number(row.position),
  workspace: row.workspace,
  streamId: row.stream_id,
  streamVersion: Number(row.stream_version),
  eventId: row.event_id,
});

/** Null where the stream does not exist. */
const keptBy = async (nats: NatsConnection): Promise<Kept | null> => {
  const manager = await openJetStreamManager(nats);
  try {
    const { state } = await manager.streams.info(STREAMS.EVENTS.name);
    return { first: state.first_seq, last: state.last_seq, deleted: state.num_deleted ?? 0 };
  } catch (error) {
    if (jetstreamErrorCode(error) === JETSTREAM_CODES.streamNotFound) return null;
    throw error;
  }
};

/** Message ids by sequence number, in order, from `from` on. Headers only: contents stay where they are. */
async function* messageIds(nats: NatsConnection, from: number, to: number) {
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

async function* rowsBetween(pool: pg.Pool, from: number, to: number): AsyncGenerator<Row> {
  for (let next = from; next <= to;) {
    const { rows } = await pool.query<Row>(PAGE_SQL, [next, to]);
    yield* rows;
    if (rows.length < PAGE) return;
    next = Number(rows.at(-1)?.position) + 1;
  }
}

/** Goes along both at once; an event that has left the log for an archive is passed over. */
const compareContents = async (
  pool: pg.Pool,
  nats: NatsConnection,
  from: number,
  to: number,
): Promise<{ readonly findings: Finding[]; readonly compared: number }> => {
  const findings: Finding[] = [];
  let compared = 0;
  if (from > to) return { findings, compared };
  const messages = messageIds(nats, from, to);
  let message = await messages.next();
  for await (const row of rowsBetween(pool, from, to)) {
    const at = placeOf(row);
    while (!message.done && message.value.seq < at.position) message = await messages.next();
    compared++;
    if (message.done || message.value.seq > at.position)
      findings.push(violation(at, 'the relay has left this event out of JetStream'));
    else if (message.value.id !== at.eventId)
      findings.push(violation(at, `JetStream holds event ${message.value.id || '-'} in its place`));
  }
  await messages.return();
  return { findings, compared };
};

const headOf = async (pool: pg.Pool): Promise<number> =>
  Number((await pool.query<{ head: string }>(HEAD_SQL)).rows[0]?.head ?? 0);

const compareEnds = async (pool: pg.Pool, kept: Kept, head: number): Promise<Finding[]> => {
  const now = await headOf(pool);
  const at = nowhere('');
  const findings: Finding[] = [];
  if (kept.last < head)
    findings.push(open(at, `${head - kept.last} events are in the log and not yet in JetStream`));
  if (kept.last > now)
    findings.push(
      violation(at, `JetStream is at ${kept.last}, the log at ${now}: it tells what is not in the log`),
    );
  if (kept.deleted > 0)
    findings.push(violation(at, `${kept.deleted} messages were deleted from JetStream's midst`));
  return findings;
};

/**
 * Compares every message that JetStream still keeps, up to the log's head as it was at the start, with the log. Ten
 * seconds are given to the relay to bring what it has not yet brought.
 * @param after the position after which to compare; null for all
 */
export const compareRelay = async (
  pool: pg.Pool,
  nats: NatsConnection,
  settled: Settled,
  after: number | null,
): Promise<{ readonly findings: readonly Finding[]; readonly checked: number }> => {
  const head = await headOf(pool);
  const kept = await settled(
    () => keptBy(nats),
    (now) => now !== null && now.last >= head,
  );
  if (kept === null)
    return { findings: [violation(nowhere(''), 'JetStream has no stream EVENTS')], checked: 0 };
  const ends = await compareEnds(pool, kept, head);
  const from = Math.max(kept.first, (after ?? 0) + 1);
  const { findings, compared } = await compareContents(pool, nats, from, Math.min(kept.last, head));
  return { findings: [...ends, ...findings], checked: compared };
};
