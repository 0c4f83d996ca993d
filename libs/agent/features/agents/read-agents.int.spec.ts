import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { createAgentWorld, newAddress, submitTo, until, WORKSPACE } from '../testing/agent-world.js';
import type { AgentWorld } from '../testing/agent-world.js';
import { hangs } from '../testing/test-model.js';

jest.setTimeout(30_000);

let world: AgentWorld;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
});
afterAll(() => world.close());

describe('the list of agents', () => {
  it('contains the configured agents and whether they are working', async () => {
    const { runtime, ...process } = world.process();
    const state = async () => (await runtime.listAgents(WORKSPACE)).agents[0]?.state;
    expect((await runtime.listAgents(WORKSPACE)).agents).toMatchObject([
      { id: 'main', provider: 'first', model: 'm', tools: ['echo'], state: 'idle', isDefault: true },
    ]);
    world.model.reply = hangs();
    const { sessionId } = await submitTo({ runtime, ...process }, { address: newAddress() });
    await until(async () => (await state()) === 'working');
    await runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' });
    await until(async () => (await state()) === 'idle');
  });
});
