import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { auditUntilQuiet, createWrongClocks, readFacts, type WrongClocks } from '@antiphon/testing/faults';
import {
  checkCommands,
  percentile,
  seeded,
  startLoad,
  carryOutRun,
  RUN_KEY_INPUT,
} from '@antiphon/testing/load';
import type { TakenRun, TimedTurn } from '@antiphon/testing/load';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { CANARY_KEY, eventually, readEvents, twoVendors } from './stack-under-test.js';

jest.setTimeout(900_000);

const seed = Number(process.env['ANTIPHON_TEST_SEED'] ?? Date.now() % 1_000_000);
const LOAD_MS = Number(process.env['ANTIPHON_CLOCKS_MS'] ?? 60_000);
const MINUTE = 60_000;
const PROCESSES = ['gateway-1', 'gateway-2', 'agent-1', 'agent-2', 'metering-1', 'memory-1', 'sandbox-1'];
const SCALE = { gateway: 2, agent: 2 };
/** How far behind an approval's own time its end may come. */
const EXPIRES_S = 5;

const APPROVALS = `
[[agents.approvals]]
tool = "calculator"
expires_after_s = ${EXPIRES_S}
`;
const WORKFLOW = {
  name: 'clocks',
  inputs: { [RUN_KEY_INPUT]: {} },
  nodes: [
    { id: 'first', agent: 'claude', prompt: `first {{inputs.${RUN_KEY_INPUT}}}` },
    { id: 'second', agent: 'claude', needs: ['first'], prompt: 'second' },
  ],
};

let clocks: WrongClocks;
let mock: MockModel;
let stack: TestStack;
let client: SocketClient;
const turns: TimedTurn[] = [];
const runs: TakenRun[] = [];

beforeAll(async () => {
  clocks = createWrongClocks();
  mock = await startMockModel(async ({ user, toolResults }) => {
    await sleep(20);
    if (toolResults.length > 0) return { text: ['it is ', `${toolResults[0]}`] };
    const name = user === 'calculate' ? 'calculator' : 'echo';
    return { tools: [{ id: 'c', name, input: { expression: '6*7' } }] };
  });
  const config = twoVendors(mock.url).trimEnd() + APPROVALS;
  stack = await startStack({ config, scale: SCALE, env: { ...clocks.env, E2E_PROVIDER_KEY: CANARY_KEY } });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
  clocks?.close();
});

const report = (figures: string): void => void process.stdout.write(`${figures}\n`);
const wsUrls = () => stack.stackJson().urls.gateways.map((url) => `${url.replace(/^http/, 'ws')}/ws`);

/** Turns and runs while `meanwhile` sets the clocks. */
const underLoad = async (meanwhile: () => Promise<void>): Promise<void> => {
  const load = startLoad({ wsUrls: wsUrls(), sessions: 6, agent: 'claude' });
  let over = false;
  const carryOut = async (lane: number): Promise<void> => {
    for (let nth = 1; !over; nth++) {
      const key = `clocks-${seed}-${lane}-${nth}-${turns.length}`;
      runs.push(
        await carryOutRun(() => stack.gatewayUrl, {
          key,
          workflow: WORKFLOW,
          inputs: { [RUN_KEY_INPUT]: key },
        }),
      );
    }
  };
  const lanes = Promise.all([carryOut(1), carryOut(2)]);
  await meanwhile();
  over = true;
  await Promise.all([load.stop(), lanes]);
  turns.push(...load.done);
  const took = load.done.map(({ askedAt, doneAt }) => doneAt - askedAt);
  report(
    `${load.done.length} turns, p50 ${percentile(took, 0.5).toFixed(0)} ms, p99 ${percentile(took, 0.99).toFixed(0)} ms; ${runs.length} runs so far`,
  );
};

const everythingHolds = async (): Promise<void> => {
  const verdict = checkCommands({ turns, runs }, await readFacts(stack));
  expect({ seed, ...verdict }).toMatchObject({ lost: 0, repeated: 0, misread: 0, first: null });
  expect(runs.every(({ status }) => status === 'completed')).toBe(true);
};

/** Until the next month begins, UTC. */
const toMonthEnd = (): number => {
  const now = new Date();
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) - now.getTime();
};

describe(`clocks that are wrong, by seed ${seed}`, () => {
  it('differ by ten minutes between processes: nothing is lost, nothing done twice', async () => {
    PROCESSES.forEach((name, nth) => clocks.set(name, (nth % 2 === 0 ? 5 : -5) * MINUTE));
    await underLoad(() => sleep(LOAD_MS / 2));
    await everythingHolds();
    // They were wrong: what services wrote of the time is not what the database did.
    const requested = await readEvents(stack, { type: 'TurnRequested' });
    const said = requested.flatMap(({ data }) => {
      const at = Date.parse(String(data['requestedAt']));
      return Number.isNaN(at) ? [] : [(at - Date.now()) / MINUTE];
    });
    expect(said.some((minutes) => Math.abs(minutes) > 4)).toBe(true);
  });

  it('jump by an hour, back again, and over the end of the month: nothing is lost, nothing done twice', async () => {
    const chance = seeded(seed);
    await underLoad(async () => {
      const until = performance.now() + LOAD_MS;
      while (performance.now() < until) {
        const jumps = [0, 60 * MINUTE, -60 * MINUTE, 5 * MINUTE, -5 * MINUTE, toMonthEnd() - 1_000];
        clocks.set(chance.pick(PROCESSES), chance.pick(jumps));
        await sleep(chance.between(200, 1_500));
      }
    });
    for (const name of PROCESSES) clocks.set(name, 0);
    await everythingHolds();
  });

  it('let an approval expire once', async () => {
    PROCESSES.forEach((name, nth) => clocks.set(name, (nth % 2 === 0 ? 1 : -1) * EXPIRES_S * 1_000));
    const place = { channel: 'test', account: 'clocks', agent: 'gpt', content: 'calculate' };
    const streams = Array.from({ length: 4 }, (_, nth) =>
      client.stream('chat.send', { ...place, peer: `a${nth}` }),
    );
    await Promise.all(streams.map((stream) => stream.done()));
    for (const name of PROCESSES) clocks.set(name, 0);
    const ends = await eventually('their ends', async () => {
      const expired = await readEvents(stack, { type: 'ApprovalExpired' });
      return expired.length >= streams.length ? expired : undefined;
    });
    expect(ends).toHaveLength(streams.length);
  });

  it('leave a log that the audit accepts', async () => {
    expect((await auditUntilQuiet(stack)).said).toContain('everything holds');
  });
});
