import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ModelFailure } from '@antiphon/agent-domain';
import type { ModelFailureDetails, ModelRequest } from '@antiphon/agent-domain';
import { createLogger } from '@antiphon/observability';
import { createTestDatabase } from '@antiphon/testing';
import { createAgentWorld, newAddress, submitTo, testConfig, until } from '../testing/agent-world.js';
import type { AgentWorld, TestProcess } from '../testing/agent-world.js';
import { hangs, says } from '../testing/test-model.js';

jest.setTimeout(60_000);

const MINUTE = 60_000;
let world: AgentWorld;
let now: number;
let lines: { message: string; provider?: string }[];
let broken: Set<string>;
let changes: string[];
let failure: Partial<ModelFailureDetails>;

const logger = createLogger({
  service: 'agent',
  sink: { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number]) },
});
const config = () => {
  const { agents, ...rest } = testConfig();
  const [main] = agents as [(typeof agents)[number]];
  const second = { provider: 'second', model: 'n' };
  return {
    ...rest,
    agents: [main, { ...main, ...second, id: 'other' }, { ...main, id: 'safe', fallback: second }],
  };
};
const start = (): TestProcess =>
  world.process({
    config: config(),
    clock: { now: () => now },
    logger,
    onBreakerChange: ({ provider, to }) => void changes.push(`${provider} ${to}`),
  });

beforeEach(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  now = Date.parse('2026-11-22T10:00:00Z');
  lines = [];
  changes = [];
  broken = new Set(['first']);
  failure = { reason: 'provider_error', status: 503 };
  world.model.reply = async ({ provider }: ModelRequest) => {
    if (!broken.has(provider)) return says(`from ${provider}`);
    throw new ModelFailure({
      reason: 'provider_error',
      message: 'overloaded',
      dispatched: true,
      retryable: true,
      ...failure,
    });
  };
});
afterEach(() => world.close());

const asked = (provider: string): number =>
  world.model.requests.filter((one) => one.provider === provider).length;
const turn = async (process: TestProcess, agentId = 'main') => {
  const { sessionId } = await submitTo(process, { address: newAddress(agentId) });
  return (await world.ended(sessionId)).at(-1);
};
const turns = (processes: readonly TestProcess[], count: number, agentId = 'main') =>
  Promise.all(
    Array.from({ length: count }, (_, n) => turn(processes[n % processes.length] as TestProcess, agentId)),
  );
const rows = async () =>
  (await world.pool.query<{ provider: string; failures: number }>('select * from provider_breakers')).rows;
const said = (text: string) => lines.filter(({ message }) => message.includes(text)).length;
const bothSee = (processes: readonly TestProcess[], paused: number) =>
  until(() => processes.every(({ runtime }) => runtime.pausedProviders().length === paused));

describe('twenty sessions of two processes over a provider that fails', () => {
  it('pause it once for all, leave others alone, and ask it again after its minute', async () => {
    const both = [start(), start()];
    const ends = await turns(both, 20);
    expect(ends.every((end) => end?.type === 'TurnFailed')).toBe(true);
    expect(changes).toEqual(['first paused']);
    expect(said('is paused')).toBe(1);
    await bothSee(both, 1);

    const before = asked('first');
    expect((await turns(both, 20)).map((end) => end?.data['code'])).toEqual(
      Array(20).fill('PROVIDER.PAUSED'),
    );
    expect(asked('first')).toBe(before);
    expect((await turns(both, 4, 'other')).map((end) => end?.type)).toEqual(Array(4).fill('TurnCompleted'));
    expect((await turns(both, 4, 'safe')).map((end) => end?.type)).toEqual(Array(4).fill('TurnCompleted'));
    expect(asked('first')).toBe(before);
    expect(both[0]?.runtime.pausedProviders()).toEqual([
      { provider: 'first', failures: expect.any(Number), state: 'open', until: '2026-11-22T10:01:00.000Z' },
    ]);

    broken.clear();
    now += MINUTE;
    expect((await turns(both, 20)).map((end) => end?.type)).toEqual(Array(20).fill('TurnCompleted'));
    await until(() => said('answers again') === 1);
    expect(changes).toEqual(['first paused', 'first asked']);
    expect(said('trial call')).toBe(1);
    expect(await rows()).toEqual([]);
  });

  it('is paused for another minute when the trial call fails, and one process alone makes it', async () => {
    const both = [start(), start()];
    await turns(both, 6);
    await bothSee(both, 1);
    now += MINUTE;
    const before = asked('first');
    const ends = await turns(both, 10);
    expect(ends.map((end) => end?.data['code'])).toEqual(Array(10).fill('PROVIDER.PAUSED'));
    expect(asked('first')).toBe(before + 1);
    expect(changes).toEqual(['first paused', 'first paused']);
  });
});

describe('a trial call', () => {
  const pauseFirst = async (): Promise<TestProcess> => {
    const one = start();
    await turns([one], 5);
    await bothSee([one], 1);
    now += MINUTE;
    return one;
  };

  it('whose process dies keeps nobody out for longer than a minute', async () => {
    const one = await pauseFirst();
    world.model.reply = hangs();
    const before = asked('first');
    await submitTo(one, { address: newAddress() });
    await until(() => asked('first') === before + 1);
    one.kill();
    await world.bury(one);
    world.model.reply = async () => says('again');
    const other = start();
    await until(() => other.runtime.pausedProviders()[0]?.state === 'probing');
    const { sessionId } = await submitTo(other, { address: newAddress() });
    await until(async () => (await world.types(sessionId)).includes('ModelCallStarted'));
    expect(asked('first')).toBe(before + 1);
    now += MINUTE;
    expect((await world.ended(sessionId)).at(-1)?.type).toBe('TurnCompleted');
    await until(async () => (await rows()).length === 0);
  });

  it('that is cancelled leaves the trial to the next call', async () => {
    const one = await pauseFirst();
    world.model.reply = hangs();
    const before = asked('first');
    const { sessionId } = await submitTo(one, { address: newAddress() });
    await until(() => asked('first') === before + 1);
    await one.runtime.cancelTurn({ workspace: 'default', sessionId, caller: 'spec' });
    expect((await world.ended(sessionId)).at(-1)?.type).toBe('TurnCancelled');
    world.model.reply = async () => says('again');
    expect((await turn(one))?.type).toBe('TurnCompleted');
  });

  it('that the provider refuses shows that it is there', async () => {
    const one = await pauseFirst();
    failure = { status: 400, retryable: false };
    expect((await turn(one))?.data).toMatchObject({ code: 'PROVIDER.ERROR' });
    await until(() => said('answers again') === 1);
  });
});

describe('what does not pause a provider', () => {
  it('is what is ours to mend', async () => {
    failure = { status: 401, retryable: false };
    await turns([start()], 12);
    expect(await rows()).toEqual([]);
  });

  it('is failures that are not in a row, whichever process saw the success between', async () => {
    const [one, other] = [start(), start()];
    await turn(one);
    expect(await rows()).toMatchObject([{ failures: 3 }]);
    broken.clear();
    now += 1;
    await turn(other);
    await until(async () => (await rows()).length === 0);
    broken.add('first');
    now += 1;
    await turn(one);
    expect(await rows()).toMatchObject([{ failures: 3, open_until: null }]);
    expect(changes).toEqual([]);
  });

  it('and a provider that answers costs no statement', async () => {
    broken.clear();
    const query = jest.spyOn(world.pool, 'query');
    await turns([start()], 5);
    const written = query.mock.calls.filter(([asked]) =>
      /^antiphon_breaker_(?!all)/.test((asked as unknown as { name?: string }).name ?? ''),
    );
    expect(written).toEqual([]);
    query.mockRestore();
  });
});
