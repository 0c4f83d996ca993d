import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '@antiphon/config';
import { createTestDatabase } from '@antiphon/testing';
import { createModels } from '@antiphon/providers-features/adapters/create-models';
import type { Models } from '@antiphon/providers-features/adapters/create-models';
import { createAgentWorld, newAddress, submitTo } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';

const EXAMPLE = fileURLToPath(new URL('../../../../examples/three-agents/antiphon.toml', import.meta.url));

describe('examples/three-agents', () => {
  let world: AgentWorld;
  let models: Models;
  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  }, 60_000);
  afterAll(async () => {
    await world.close();
    models.close();
  }, 30_000);

  it('answers a message by a question, a message and a hand-over between its agents', async () => {
    const env = { ANTIPHON_CONFIG: EXAMPLE };
    const config = loadConfig({ env, cwd: '/', homeDir: '/' });
    expect(config.warnings).toEqual([]);
    models = createModels(config, env);
    const agent = world.process({ config, models });
    const { sessionId } = await submitTo(
      agent,
      { address: newAddress('planner') },
      'Write a line about tides.',
    );
    const events = await world.ended(sessionId);
    const results = events.filter(({ type }) => type === 'ToolCallCompleted');
    expect(results[0]?.data['content']).toBe('[scripted] The gravity of the moon.');
    expect(results).toHaveLength(3);
    expect(events.slice(-2)).toMatchObject([
      { type: 'AnswerForwarded', data: { text: '[scripted] Twice a day the moon lifts the sea.' } },
      { type: 'TurnCompleted' },
    ]);
    const log = await world.store.readLog({ after: 0, limit: 1_000, categories: ['session'] });
    const received = log.filter(({ type }) => type === 'MessagesReceived');
    expect(received.map(({ data }) => data['messages'])).toMatchObject([
      [{ from: 'agent/planner', content: { text: 'One sentence, please.' } }],
    ]);
  });
});
