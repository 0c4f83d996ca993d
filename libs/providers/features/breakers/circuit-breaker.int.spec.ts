import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelFailureDetails, ModelRequest } from '@antiphon/providers-domain';
import { createLogger } from '@antiphon/observability';
import { acrossWorkspaces } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { hangs, says } from '@antiphon/agent-features/testing/test-model';

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
    onCircuitChange: ({ provider, to }) => void changes.push(`${provider} ${to}`),
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

const callsTo = (provider: string): number =>
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
  (
    await acrossWorkspaces(world.pool).query<{ provider: string; failures: number }>(
      'select * from provider_breakers',
    )
  ).rows;
const logged = (text: string) => lines.filter(({ message }) => message.includes(text)).length;
const allSee = (processes: readonly TestProcess[], openCircuits: number) =>
  until(() => processes.every(({ runtime }) => runtime.openCircuits().length === openCircuits));

describe('a circuit breaker under twenty sessions of two processes', () => {
  it('opens once for all processes, spares other providers, and closes after its minute', async () => {
    const both = [start(), start()];
    const ends = await turns(both, 20);
    expect(ends.every((end) => end?.type === 'TurnFailed')).toBe(true);
    expect(changes).toEqual(['first opened']);
    expect(logged('circuit breaker opened')).toBe(1);
    await allSee(both, 1);

    const before = callsTo('first');
    expect((await turns(both, 20)).map((end) => end?.data['code'])).toEqual(
      Array(20).fill('PROVIDER.PAUSED'),
    );
    expect(callsTo('first')).toBe(before);
    expect((await turns(both, 4, 'other')).map((end) => end?.type)).toEqual(Array(4).fill('TurnCompleted'));
    expect((await turns(both, 4, 'safe')).map((end) => end?.type)).toEqual(Array(4).fill('TurnCompleted'));
    expect(callsTo('first')).toBe(before);
    expect(both[0]?.runtime.openCircuits()).toEqual([
      { provider: 'first', failures: expect.any(Number), state: 'open', until: '2026-11-22T10:01:00.000Z' },
    ]);

    broken.clear();
    now += MINUTE;
    expect((await turns(both, 20)).map((end) => end?.type)).toEqual(Array(20).fill('TurnCompleted'));
    await until(() => logged('circuit breaker closed') === 1);
    expect(changes).toEqual(['first opened', 'first closed']);
    expect(logged('circuit breaker trial call started')).toBe(1);
    expect(await rows()).toEqual([]);
  });

  it('stays open for another minute when its only trial call fails', async () => {
    const both = [start(), start()];
    await turns(both, 6);
    await allSee(both, 1);
    now += MINUTE;
    const before = callsTo('first');
    const ends = await turns(both, 10);
    expect(ends.map((end) => end?.data['code'])).toEqual(Array(10).fill('PROVIDER.PAUSED'));
    expect(callsTo('first')).toBe(before + 1);
    expect(changes).toEqual(['first opened', 'first opened']);
  });
});

describe('a trial call', () => {
  const openFirst = async (): Promise<TestProcess> => {
    const one = start();
    await turns([one], 5);
    await allSee([one], 1);
    now += MINUTE;
    return one;
  };

  it('counts as lost a minute after its process died', async () => {
    const one = await openFirst();
    world.model.reply = hangs();
    const before = callsTo('first');
    await submitTo(one, { address: newAddress() });
    await until(() => callsTo('first') === before + 1);
    one.kill();
    await world.handleExit(one);
    world.model.reply = async () => says('again');
    const other = start();
    await until(() => other.runtime.openCircuits()[0]?.state === 'probing');
    const { sessionId } = await submitTo(other, { address: newAddress() });
    await until(async () => (await world.types(sessionId)).includes('ModelCallStarted'));
    expect(callsTo('first')).toBe(before + 1);
    now += MINUTE;
    expect((await world.ended(sessionId)).at(-1)?.type).toBe('TurnCompleted');
    await until(async () => (await rows()).length === 0);
  });

  it('closes the circuit when it succeeds, also after another one has begun', async () => {
    const one = await openFirst();
    const answers: (() => void)[] = [];
    world.model.reply = async () => {
      await new Promise<void>((resolve) => answers.push(resolve));
      return says('late');
    };
    const ends = [turn(one)];
    await until(() => answers.length === 1);
    now += MINUTE;
    ends.push(turn(one));
    await until(() => answers.length === 2);
    answers[0]?.();
    expect((await ends[0])?.type).toBe('TurnCompleted');
    await until(async () => (await rows()).length === 0);
    answers[1]?.();
    expect((await ends[1])?.type).toBe('TurnCompleted');
  });

  it('is released to the next call when it is cancelled', async () => {
    const one = await openFirst();
    world.model.reply = hangs();
    const before = callsTo('first');
    const { sessionId } = await submitTo(one, { address: newAddress() });
    await until(() => callsTo('first') === before + 1);
    await one.runtime.cancelTurn({ workspace: 'default', sessionId, caller: 'spec' });
    expect((await world.ended(sessionId)).at(-1)?.type).toBe('TurnCancelled');
    world.model.reply = async () => says('again');
    expect((await turn(one))?.type).toBe('TurnCompleted');
  });

  it('closes the circuit when the provider refuses the request', async () => {
    const one = await openFirst();
    failure = { status: 400, retryable: false };
    expect((await turn(one))?.data).toMatchObject({ code: 'PROVIDER.ERROR' });
    await until(() => logged('circuit breaker closed') === 1);
  });
});

describe('a closed circuit', () => {
  it('stays closed after client errors', async () => {
    failure = { status: 401, retryable: false };
    await turns([start()], 12);
    expect(await rows()).toEqual([]);
  });

  it('stays closed when a success of another process separates the failures', async () => {
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

  it('costs no statement while the provider responds', async () => {
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
