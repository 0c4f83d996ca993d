import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { agentInboxStream } from '@antiphon/contracts/agent';
import { acrossWorkspaces } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import { agentUuidOf } from '@antiphon/agent-log/derived-ids';
import { WORKSPACE, createAgentWorld } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';
import { MessageFaults, configOfAgents } from '../testing/message-faults.js';
import { says } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(120_000);

describe('Messages under faults', () => {
  let world: AgentWorld;
  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
    world.model.reply = async () => says('done');
  }, 60_000);
  afterAll(() => world.close(), 30_000);

  it('and ends of children are in one context each, of their recipient, although processes die', async () => {
    const load = { recipients: ['r1', 'r2', 'r3'], messages: 400, children: 100, senders: 8 };
    const report = await new MessageFaults(world, { ...load, kills: 6, killEveryMs: 300 }).run();
    expect(report).toEqual({ sent: 500, kills: 6, lost: [], twice: [], misdirected: [] });
  });

  // @shows agents-A6
  it('cost a step at most twice as much with 10,000 unread messages as with 200', async () => {
    const { services } = world.process({ config: configOfAgents(['few', 'many']) }).runtime;
    const fill = async (agentId: string, count: number): Promise<void> => {
      const streamId = agentInboxStream(agentUuidOf(WORKSPACE, agentId));
      for (let done = 0; done < count; done += 200) {
        const events = Array.from({ length: 200 }, (_, index) => {
          const messageId = randomUUID();
          const data = {
            ...{ messageId, type: 'AgentSpoke', from: 'spec', to: { kind: 'agent', agentId } },
            ...{ content: { text: `m${done + index}` }, causeId: null, sentAt: '2026-11-21T09:30:00.000Z' },
          };
          const metadata = { correlationId: 'spec', service: 'agent' };
          return { eventId: messageId, type: 'AgentMessageSent', schemaVersion: 1, data, metadata };
        });
        await world.store.append({
          workspace: WORKSPACE,
          streams: [{ streamId, expectedVersion: 'any', events }],
        });
      }
    };
    await fill('few', 200);
    await fill('many', 10_000);
    const { inboxes } = services;
    const measure = async (agentId: string): Promise<number> => {
      const startedAt = performance.now();
      const state = await inboxes.readState(WORKSPACE, agentId);
      expect(await inboxes.readUnread(WORKSPACE, agentId, state, 101)).toHaveLength(101);
      return performance.now() - startedAt;
    };
    const times = { few: [] as number[], many: [] as number[] };
    for (let round = 0; round < 60; round++)
      for (const id of ['few', 'many'] as const) times[id].push(await measure(id));
    const median = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1] ?? 0;
    process.stdout.write(
      `inbox of 200: ${median(times.few).toFixed(2)} ms, of 10,000: ${median(times.many).toFixed(2)} ms\n`,
    );
    // The inbox is 50 times as long. 2 ms are for the noise of a loaded machine.
    expect(median(times.many)).toBeLessThan(median(times.few) * 2 + 2);
    const { rows } = await acrossWorkspaces(world.pool).query<{ read: number }>(
      `select coalesce(sum(idx_tup_read), 0)::int as read from pg_stat_user_indexes
       where indexrelname = 'events_message_stream_idx'`,
    );
    // Every read took this index: 120 reads of 101 messages, but for counters not yet published.
    expect(rows[0]?.read).toBeGreaterThan(1_000);
  });
});
