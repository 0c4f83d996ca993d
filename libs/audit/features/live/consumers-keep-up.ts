import type { ConsumerInfo } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { open } from '@antiphon/audit-domain';
import type { Finding } from '@antiphon/audit-domain';
import { JETSTREAM_CODES, STREAMS, jetstreamErrorCode, openJetStreamManager } from '@antiphon/messaging';
import { nowhere } from '../audit-report.js';
import type { About } from '../audit-report.js';
import type { Settled } from './settle.js';

export const consumersKeepUp: About = {
  name: 'consumers-keep-up',
  about: 'no consumer of events has something left to take or to acknowledge',
  counts: 'consumers',
};

const consumersOf = async (nats: NatsConnection): Promise<ConsumerInfo[]> => {
  const manager = await openJetStreamManager(nats);
  const found: ConsumerInfo[] = [];
  try {
    // Those with a name that lasts; the others belong to somebody who reads just now.
    for await (const info of manager.consumers.list(STREAMS.EVENTS.name))
      if (info.config.durable_name) found.push(info);
  } catch (error) {
    if (jetstreamErrorCode(error) !== JETSTREAM_CODES.streamNotFound) throw error;
  }
  return found;
};

const leftTo = ({ num_pending, num_ack_pending }: ConsumerInfo): number => num_pending + num_ack_pending;

/** What a consumer has left is open, no violation: it is at work, or its process is away. */
export const findLaggards = async (
  nats: NatsConnection,
  settled: Settled,
): Promise<{ readonly findings: readonly Finding[]; readonly checked: number }> => {
  const consumers = await settled(
    () => consumersOf(nats),
    (found) => found.every((info) => leftTo(info) === 0),
  );
  const findings = consumers
    .filter((info) => leftTo(info) > 0)
    .map((info) => open(nowhere(''), `consumer ${info.name} has ${leftTo(info)} events left`));
  return { findings, checked: consumers.length };
};
