import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { createAgentWorld } from '../testing/agent-world.js';
import type { AgentWorld } from '../testing/agent-world.js';
import { MessageFaults } from '../testing/message-faults.js';
import { says } from '../testing/test-model.js';

describe('Messages under faults, in full', () => {
  let world: AgentWorld;
  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
    world.model.reply = async () => says('done');
  }, 60_000);
  afterAll(() => world.close(), 30_000);

  it('10,000 messages and 1,000 ends of children are read once, by their recipient', async () => {
    const recipients = Array.from({ length: 8 }, (_, index) => `r${index}`);
    const load = { recipients, messages: 10_000, children: 1_000, senders: 16 };
    const report = await new MessageFaults(world, { ...load, kills: 40, killEveryMs: 500 }).run();
    expect(report).toEqual({ sent: 11_000, kills: 40, lost: [], twice: [], misdirected: [] });
  });
});
