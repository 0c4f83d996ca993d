import { describe, expect, it } from '@jest/globals';
import type { ChannelMessage, ChannelMessageEvent } from '@antiphon/contracts/agent';
import { specFor } from '@antiphon/testing';
import { deliveryDecider } from './delivery.decider.js';
import type { DeliveryCommand } from './delivery.decider.js';

const given = specFor(deliveryDecider);

const messageId = '0192f0c1-7a2b-5c3d-8e4f-000000000071';
const NOW = '2026-11-28T10:00:00.000Z';
const LATER = '2026-11-28T10:01:00.000Z';
const schemaVersion = 1;
const message: ChannelMessage = {
  ...{ peer: '4711', kind: 'text', text: 'hello', attachments: [], deliveryId: '9' },
  ...{ sender: { id: '4711', isBot: false }, replyTo: {} },
};
const place = { messageId, channel: 'telegram', account: 'default' };
const turn = { messageId, agentId: 'main', sessionId: messageId, turnId: messageId };

type EventOf<T extends ChannelMessageEvent['type']> = Extract<ChannelMessageEvent, { type: T }>;
const fact = <T extends ChannelMessageEvent['type']>(
  type: T,
  data: Omit<EventOf<T>['data'], 'at'>,
): EventOf<T> => ({ type, schemaVersion, data: { ...data, at: NOW } }) as unknown as EventOf<T>;

const received = fact('ChannelMessageReceived', { ...place, message, moduleDigest: 'd' });
const started = fact('ChannelTurnStarted', turn);
const queued = (...parts: string[]) => fact('ChannelReplyQueued', { messageId, kind: 'answer', parts });
const attempted = (part = 0, attempt = 1) =>
  fact('ChannelReplyAttempted', { messageId, part, attempt, by: 'agent-1' });
const sent = (part = 0, attempt = 1) =>
  fact('ChannelReplySent', { messageId, part, attempt, via: 'request', platformId: null });
const unknown = fact('ChannelReplyUnknown', { messageId, part: 0, attempt: 1, code: 'CHANNEL.OUTCOME_LOST' });
const failed = fact('ChannelReplyFailed', {
  ...{ messageId, part: 0, attempt: 1, code: 'HTTP.403', status: 403, detail: null },
});

const receive: DeliveryCommand = {
  ...{ type: 'Receive', data: { ...place, message, moduleDigest: 'd' }, now: NOW },
};
const queue: DeliveryCommand = {
  ...{ type: 'QueueReply', data: { messageId, kind: 'answer', parts: ['one', 'two'] }, now: NOW },
};
const attempt = (now = NOW): DeliveryCommand => ({
  type: 'Attempt',
  data: { messageId, by: 'agent-1' },
  now,
});
const succeed = (part = 0, number = 1): DeliveryCommand => ({
  type: 'Succeed',
  data: { messageId, part, attempt: number, via: 'request', platformId: null },
  now: NOW,
});
const replay: DeliveryCommand = { type: 'Replay', data: { messageId, by: 'local' }, now: NOW };

describe('a delivery', () => {
  it('is received once, however often it is delivered', () => {
    given([]).when(receive).then([received]);
    given([received]).when(receive).then([]);
    given([received, started, queued('one'), attempted(), sent()])
      .when(receive)
      .then([]);
  });

  it('has one turn and one reply', () => {
    given([received]).when({ type: 'StartTurn', data: turn, now: NOW }).then([started]);
    given([received, started]).when({ type: 'StartTurn', data: turn, now: NOW }).then([]);
    given([received, started])
      .when(queue)
      .then([queued('one', 'two')]);
    given([received, started, queued('one')])
      .when(queue)
      .then([]);
  });

  it('is sent part by part, with one open attempt at a time', () => {
    const before = [received, started, queued('one', 'two')];
    given(before).when(attempt()).then([attempted()]);
    given([...before, attempted()])
      .when(attempt())
      .thenRejects('CHANNEL.NOT_QUEUED');
    given([...before, attempted(), sent()])
      .when(attempt())
      .then([attempted(1)]);
    given([...before, attempted(), sent(), attempted(1), sent(1)])
      .when(attempt())
      .thenRejects('CHANNEL.NOT_QUEUED');
  });

  it('is not sent before the time that the platform named', () => {
    const delayed = fact('ChannelReplyDelayed', {
      ...{ messageId, part: 0, attempt: 1, code: 'HTTP.429', status: 429, retryAt: LATER },
    });
    const before = [received, started, queued('one'), attempted(), delayed];
    given(before).when(attempt()).thenRejects('CHANNEL.NOT_DUE');
    expect(
      deliveryDecider.decide(
        attempt(LATER),
        before.reduce(deliveryDecider.evolve, deliveryDecider.initialState()),
      ),
    ).toMatchObject([{ type: 'ChannelReplyAttempted', data: { part: 0, attempt: 2 } }]);
  });

  it('records the outcome of an attempt once, and one that comes after its loss', () => {
    const before = [received, started, queued('one'), attempted()];
    given(before).when(succeed()).then([sent()]);
    given([...before, sent()])
      .when(succeed())
      .then([]);
    given([...before, unknown])
      .when(succeed())
      .then([sent()]);
    given(before).when(succeed(0, 2)).then([]);
  });

  it('is not sent again by itself once its outcome is unknown', () => {
    const before = [received, started, queued('one'), attempted(), unknown];
    given(before).when(attempt()).thenRejects('CHANNEL.NOT_QUEUED');
    given(before)
      .when(replay)
      .then([fact('ChannelReplyReplayed', { messageId, by: 'local' })]);
  });

  it('is replayed only as a dead letter', () => {
    given([received, started, queued('one'), attempted(), failed])
      .when(replay)
      .then([fact('ChannelReplyReplayed', { messageId, by: 'local' })]);
    given([received, started, queued('one'), attempted(), sent()])
      .when(replay)
      .thenRejects('CHANNEL.NOT_DEAD');
    given([received]).when(replay).thenRejects('CHANNEL.NOT_DEAD');
  });
});
