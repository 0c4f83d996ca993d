import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { ProviderConfig } from '@antiphon/config';
import { createTestDatabase } from '@antiphon/testing';
import { closedPort, startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';
import { createModels, type Models } from '../adapters/create-models.js';

jest.setTimeout(60_000);

const ENV = { ANTHROPIC_API_KEY: 'sk-primary-0123456789', OPENAI_API_KEY: 'sk-fallback-0123456789' };

let world: AgentWorld;
let primary: MockModel;
let fallback: MockModel;
let models: Models;
let primaryScript: MockScript;

beforeEach(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  primary = await startMockModel((request) => primaryScript(request));
  fallback = await startMockModel(() => ({ text: ['from ', 'the fallback'] }));
});
afterEach(async () => {
  await world.close();
  models.close();
  await Promise.all([primary.close(), fallback.close()]);
});

/**
 * Runs one turn of an agent whose primary provider speaks Anthropic's format and its fallback
 * OpenAI's.
 */
const runTurn = async (primaryUrl = primary.url) => {
  const providers = [
    { name: 'first', kind: 'anthropic', baseUrl: primaryUrl, apiKeyEnv: null },
    { name: 'second', kind: 'openai', baseUrl: `${fallback.url}/v1`, apiKeyEnv: null },
  ] as unknown as ProviderConfig[];
  const config = { ...testConfig({ fallback: { provider: 'second', model: 'n' } }), providers };
  models = createModels(config, ENV);
  const { sessionId } = await submitTo(world.process({ config, models }), { address: newAddress() });
  const events = await world.ended(sessionId);
  return {
    attempts: events
      .filter(({ type }) => type === 'ModelCallStarted')
      .map(({ data }) => `${String(data['provider'])} ${String(data['model'])}`),
    completed: events.filter(({ type }) => type === 'ModelCallCompleted').map(({ data }) => data),
    failed: events.filter(({ type }) => type === 'ModelCallAborted').map(({ data }) => data),
    last: events.at(-1),
  };
};

describe('a fallback over real HTTP', () => {
  it('completes the turn after the primary provider has failed three times', async () => {
    primaryScript = () => ({ status: 529, body: { error: { message: 'overloaded' } } });
    const turn = await runTurn();
    expect(turn.last?.type).toBe('TurnCompleted');
    expect(turn.attempts).toEqual(['first m', 'first m', 'first m', 'second n']);
    expect(turn.completed).toMatchObject([{ text: 'from the fallback' }]);
    expect(primary.calls).toHaveLength(3);
    expect(primary.calls[0]?.format).toBe('anthropic');
    expect(fallback.calls).toMatchObject([{ format: 'openai', model: 'n', user: 'hi' }]);
    expect(fallback.requests[0]?.headers.authorization).toBe(`Bearer ${ENV.OPENAI_API_KEY}`);
  });

  it('completes the turn at once when the primary provider refuses the request', async () => {
    primaryScript = () => ({ status: 401, body: { error: { message: 'bad key' } } });
    const turn = await runTurn();
    expect(turn.last?.type).toBe('TurnCompleted');
    expect(turn.attempts).toEqual(['first m', 'second n']);
  });

  it('completes the turn when the primary provider is unreachable', async () => {
    const url = await closedPort();
    const turn = await runTurn(url);
    expect(turn.last?.type).toBe('TurnCompleted');
    expect(turn.completed).toMatchObject([{ text: 'from the fallback' }]);
    expect(turn.failed).toHaveLength(3);
    expect(turn.failed[0]).toMatchObject({
      reason: 'provider_unreachable',
      dispatched: false,
      cause: { kind: 'provider_unreachable', address: new URL(url).host, code: 'ECONNREFUSED' },
    });
  });
});
