import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { WORKSPACE, createAgentWorld } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';
import { MessageFaults, configOfAgents } from '../testing/message-faults.js';
import { childEndedAppend } from '../lifecycle/child-ended.js';
import { says } from '@antiphon/agent-features/testing/test-model';

describe('Messages under faults, in full', () => {
  let world: AgentWorld;
  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
    world.model.reply = async () => says('done');
  }, 60_000);
  afterAll(() => world.close(), 30_000);

  // @shows agents-A6
  it('10,000 messages and 1,000 ends of children are read once, by their recipient', async () => {
    const recipients = Array.from({ length: 8 }, (_, index) => `r${index}`);
    const load = { recipients, messages: 10_000, children: 1_000, senders: 16 };
    const report = await new MessageFaults(world, { ...load, kills: 40, killEveryMs: 500 }).run();
    expect(report).toEqual({ sent: 11_000, kills: 40, lost: [], twice: [], misdirected: [] });
  });

  // @shows agents-A5
  it('the end of a child is in the inbox of its parent within 50 ms at p99', async () => {
    const { store, inboxes } = world.process({ config: configOfAgents(['parent']) }).runtime.services;
    const result = { status: 'completed' as const, text: 'x', sessionId: null, turnId: null, code: null };
    const times: number[] = [];
    for (let index = 0; index < 1_000; index++) {
      const at = new Date().toISOString();
      const ended = { workspace: WORKSPACE, parentId: 'parent', childId: `kid-${index}`, result };
      const startedAt = performance.now();
      const append = childEndedAppend({ ...ended, causeId: 'spec', at });
      await store.append({ workspace: WORKSPACE, streams: [append] });
      const state = await inboxes.readState(WORKSPACE, 'parent');
      const {
        shown: [newest],
      } = await inboxes.readNewest(WORKSPACE, state, { limit: 1 });
      times.push(performance.now() - startedAt);
      expect(newest?.message.content['agentId']).toBe(`kid-${index}`);
    }
    expect(times.sort((a, b) => a - b)[989]).toBeLessThan(50);
  });
});
