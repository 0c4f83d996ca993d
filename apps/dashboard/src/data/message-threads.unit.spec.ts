import { describe, expect, it } from '@jest/globals';
import { threadsOf, type Message } from './message-threads.js';

const message = (logPosition: number, messageId: string, more: Partial<Message> = {}): Message => ({
  ...{ messageId, logPosition, type: 'AgentSpoke', from: 'agent/a', content: { text: messageId } },
  ...{ to: { kind: 'agent', agentId: 'b' }, causeId: null, sentAt: '2026-11-22T10:00:00.000Z' },
  isRead: false,
  ...more,
});
const shown = (messages: readonly Message[]) =>
  threadsOf(messages).map(({ message: { messageId }, depth }) => `${'-'.repeat(depth)}${messageId}`);

describe('threads of messages', () => {
  it('have each answer below its message, and the thread with the newest message first', () =>
    expect(
      shown([
        message(6, 'late', { causeId: 'first' }),
        message(5, 'other'),
        message(4, 'answer', { type: 'Reply', content: { text: 'x', to: 'question' }, causeId: 'event' }),
        message(3, 'question', { causeId: 'first' }),
        message(1, 'first'),
      ]),
    ).toEqual(['first', '-question', '--answer', '-late', 'other']));

  it('begin at a message whose cause is unknown, newer or itself', () =>
    expect(
      shown([
        message(1, 'a', { causeId: 'b' }),
        message(2, 'b', { causeId: 'a' }),
        message(3, 'c', { causeId: 'c' }),
        message(4, 'd', { causeId: 'gone' }),
      ]),
    ).toEqual(['d', 'c', 'a', '-b']));

  it('of many answers to answers are drawn at a bounded depth, in time', () => {
    const chain = Array.from({ length: 2_000 }, (_, n) =>
      message(n + 1, `m${n}`, { causeId: n === 0 ? null : `m${n - 1}` }),
    );
    const lines = threadsOf(chain);
    expect(lines).toHaveLength(2_000);
    expect(Math.max(...lines.map(({ depth }) => depth))).toBe(8);
  });
});
