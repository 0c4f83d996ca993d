import { afterEach, describe, expect, it } from '@jest/globals';
import { ModelFailure, classifyFailure } from '@antiphon/providers-domain';
import type { AgentLimits, ModelAnswer, ModelRequest } from '@antiphon/providers-domain';
import type { AntiphonConfig, ProviderConfig } from '@antiphon/config';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import { until } from '@antiphon/testing/waits';
import { createModels, type Models } from './create-models.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A model that answers each call when the test says so. */
const startHeldModel = async (): Promise<MockModel & { answerNext(): void }> => {
  const held: (() => void)[] = [];
  const script: MockScript = async () => {
    await new Promise<void>((resolve) => held.push(resolve));
    return { text: ['fine'] };
  };
  const mock = await startMockModel(script);
  cleanups.push(() => {
    for (const answer of held) answer();
    return mock.close();
  });
  return { ...mock, calls: mock.calls, answerNext: () => held.shift()?.() };
};

const modelsAt = (url: string, settings: Partial<ProviderConfig>): Models => {
  const models = createModels(
    {
      source: null,
      parameters: [],
      providers: [
        { name: 'it', kind: 'openai-compatible', baseUrl: `${url}/v1`, apiKeyEnv: null, ...settings },
      ],
    } as unknown as AntiphonConfig,
    {},
  );
  cleanups.push(() => models.close());
  return models;
};

const ask = (models: Models, more: Partial<ModelRequest> = {}): Promise<ModelAnswer | ModelFailure> =>
  models
    .complete(
      {
        ...{ provider: 'it', model: 'm', system: '', messages: [{ role: 'user', text: 'hello' }], tools: [] },
        ...{ maxOutputTokens: 100, signal: new AbortController().signal, streaming: true },
        ...more,
      },
      { onText: () => undefined, onThought: () => undefined },
    )
    .catch((error: unknown) => {
      if (error instanceof ModelFailure) return error;
      throw error;
    });

const agentOf = (limits: Partial<AgentLimits>): AgentLimits => ({ id: 'main', model: 'm', ...limits });

describe('a limit of a wait', () => {
  it('names itself and its provider in the error that it causes', async () => {
    const mock = await startHeldModel();
    expect(await ask(modelsAt(mock.url, { firstByteMs: 50 }))).toMatchObject({
      reason: 'provider_timeout',
      message: 'provider timeout: no first byte within 0.05 s (first_byte_s of provider it)',
      why: { kind: 'provider_wait', ms: 50, setting: 'first_byte_s of provider it' },
    });
  });

  it('names the agent that sets it', async () => {
    const mock = await startHeldModel();
    const models = modelsAt(mock.url, { firstByteMs: 60_000, attemptMs: 60_000 });
    const agent = agentOf({ firstByteMs: 50 });
    expect(await ask(models, { agent })).toMatchObject({
      message: expect.stringContaining('(first_byte_s of agent main)'),
    });
    expect(await ask(models, { agent: agentOf({ attemptMs: 50 }) })).toMatchObject({
      message: 'provider timeout: no whole answer within 0.05 s (attempt_s of agent main)',
    });
  });

  it('has the whole attempt for an answer in one piece, which has no earlier byte', async () => {
    const mock = await startHeldModel();
    const models = modelsAt(mock.url, { firstByteMs: 20, attemptMs: 100 });
    expect(await ask(models, { streaming: false })).toMatchObject({
      message: expect.stringContaining('attempt_s of provider it'),
    });
  });

  it.each([
    [undefined, false],
    [true, true],
    [false, false],
  ])(
    'is tried again on this machine only where retry_timeouts says so (%s)',
    async (retryTimeouts, isTried) => {
      const mock = await startHeldModel();
      const settings = retryTimeouts === undefined ? {} : { retryTimeouts };
      const failure = await ask(modelsAt(mock.url, { firstByteMs: 50, ...settings }));
      expect(failure).toMatchObject({ dispatched: true, retryable: isTried });
    },
  );
});

describe('the output limit of a call', () => {
  it('is that of the model, of its provider, or of the agent', () => {
    const outputOf = (settings: Partial<ProviderConfig>, agent?: AgentLimits) =>
      modelsAt('http://127.0.0.1:1', settings).limitsOf({ provider: 'it', model: 'deepseek-chat' }, agent)
        .maxOutputTokens;
    expect(outputOf({})).toBe(8_192);
    expect(outputOf({ maxOutputTokens: 3_000 })).toBe(3_000);
    expect(outputOf({}, { id: 'main', model: 'deepseek-chat', maxOutputTokens: 30_000 })).toBe(30_000);
  });
});

describe('a limit of concurrent calls', () => {
  it('of an agent is shared by the agents that were spawned from it', async () => {
    const mock = await startHeldModel();
    const models = modelsAt(mock.url, {});
    const spawned = (id: string): AgentLimits => agentOf({ id, shared: { id: 'main', concurrentCalls: 1 } });
    const agents = [agentOf({ concurrentCalls: 1 }), spawned('a'), spawned('b')];
    const all = agents.map((agent) => ask(models, { agent }));
    for (const left of [2, 1, 0]) {
      await until(() => mock.calls.length === 3 - left);
      expect(models.countWaiting()).toBe(left);
      mock.answerNext();
    }
    for (const answer of await Promise.all(all)) expect(answer).toMatchObject({ text: 'fine' });
  });

  it('lets a call wait until another one has ended, without a request to the provider', async () => {
    const mock = await startHeldModel();
    const models = modelsAt(mock.url, { concurrentCalls: 2 });
    const all = [1, 2, 3].map(() => ask(models));
    await until(() => mock.calls.length === 2);
    expect(models.countWaiting()).toBe(1);
    mock.answerNext();
    await until(() => mock.calls.length === 3);
    expect(models.countWaiting()).toBe(0);
    mock.answerNext();
    mock.answerNext();
    for (const answer of await Promise.all(all)) expect(answer).toMatchObject({ text: 'fine' });
  });

  it('lets the workspaces take turns', async () => {
    const mock = await startHeldModel();
    const models = modelsAt(mock.url, { concurrentCalls: 1 });
    const askFor = (workspace: string) =>
      ask(models, { workspace, messages: [{ role: 'user', text: workspace }] });
    const all = [askFor('a')];
    await until(() => mock.calls.length === 1);
    all.push(askFor('a'), askFor('a'), askFor('b'));
    for (let answered = 1; answered < 4; answered += 1) {
      mock.answerNext();
      await until(() => mock.calls.length === answered + 1);
    }
    mock.answerNext();
    await Promise.all(all);
    expect(mock.calls.map(({ user }) => user)).toEqual(['a', 'a', 'b', 'a']);
  });

  it('lets a call that waits be cancelled, which the provider never sees', async () => {
    const mock = await startHeldModel();
    const models = modelsAt(mock.url, { concurrentCalls: 1 });
    const first = ask(models);
    await until(() => mock.calls.length === 1);
    const cancel = new AbortController();
    const second = ask(models, { signal: cancel.signal });
    cancel.abort();
    expect(await second).toMatchObject({ reason: 'cancelled', dispatched: false });
    mock.answerNext();
    expect(await first).toMatchObject({ text: 'fine' });
    expect(mock.calls).toHaveLength(1);
  });

  it('says that no place was free, and does not blame the provider', async () => {
    const mock = await startHeldModel();
    const models = modelsAt(mock.url, { concurrentCalls: 1 });
    const first = ask(models);
    await until(() => mock.calls.length === 1);
    const failure = await ask(models, { agent: agentOf({ attemptMs: 50 }) });
    expect(failure).toMatchObject({
      reason: 'provider_timeout',
      dispatched: false,
      message:
        'provider timeout: no free place among its concurrent calls within 0.05 s (concurrent_calls of provider it)',
    });
    expect(classifyFailure(failure as ModelFailure)).toBe('unknown');
    mock.answerNext();
    await first;
  });

  it('of an agent holds for that agent alone', async () => {
    const mock = await startHeldModel();
    const models = modelsAt(mock.url, {});
    const limited = agentOf({ concurrentCalls: 1 });
    const all = [ask(models, { agent: limited })];
    await until(() => mock.calls.length === 1);
    all.push(ask(models, { agent: limited }), ask(models));
    await until(() => mock.calls.length === 2);
    mock.answerNext();
    await until(() => mock.calls.length === 3);
    mock.answerNext();
    mock.answerNext();
    await Promise.all(all);
  });
});
