import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { auditUntilQuiet, createWrongClocks, readFacts, type WrongClocks } from '@antiphon/testing/faults';
import {
  ALL_COMPLETE,
  RUN_KEY_INPUT,
  assertCommandsHold,
  checkCommands,
  createSeededRandom,
  percentile,
  report,
  runToEnd,
  startLoad,
} from '@antiphon/testing/load';
import type { EndedRun, TimedTurn } from '@antiphon/testing/load';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import { CANARY_KEY, readEvents, twoVendorConfig, waitForValue } from './stack-under-test.js';

jest.setTimeout(900_000);

const seed = Number(process.env['ANTIPHON_TEST_SEED'] ?? Date.now() % 1_000_000);
const LOAD_MS = Number(process.env['ANTIPHON_CLOCKS_MS'] ?? 60_000);
const MINUTE = 60_000;
const PROCESSES = ['gateway-1', 'gateway-2', 'agent-1', 'agent-2', 'metering-1', 'memory-1', 'sandbox-1'];
const SCALE = { gateway: 2, agent: 2 };
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
const runs: EndedRun[] = [];

beforeAll(async () => {
  clocks = createWrongClocks();
  mock = await startMockModel(async ({ user, toolResults }) => {
    await letTimePass(20);
    if (toolResults.length > 0) return { text: ['it is ', `${toolResults[0]}`] };
    const name = user === 'calculate' ? 'calculator' : 'echo';
    return { tools: [{ id: 'c', name, input: { expression: '6*7' } }] };
  });
  const config = twoVendorConfig(mock.url).trimEnd() + APPROVALS;
  stack = await startStack({ config, scale: SCALE, env: { ...clocks.env, E2E_PROVIDER_KEY: CANARY_KEY } });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
  clocks?.close();
});

const setAll = (offsetOf: (nth: number) => number): void =>
  PROCESSES.forEach((name, nth) => clocks.set(name, offsetOf(nth)));

/** Sends turns and starts runs while `setClocks` sets the clocks. */
const runUnderLoad = async (setClocks: () => Promise<void>): Promise<void> => {
  const load = startLoad({ wsUrls: stack.wsUrls(), sessions: 6, agent: 'claude' });
  let isOver = false;
  const startRuns = async (lane: number): Promise<void> => {
    for (let nth = 1; !isOver; nth++) {
      const key = `clocks-${seed}-${lane}-${nth}-${turns.length}`;
      const inputs = { [RUN_KEY_INPUT]: key };
      runs.push(await runToEnd(() => stack.gatewayUrl, { key, workflow: WORKFLOW, inputs }));
    }
  };
  const lanes = Promise.all([startRuns(1), startRuns(2)]);
  await setClocks();
  isOver = true;
  await Promise.all([load.stop(), lanes]);
  turns.push(...load.done);
  const times = load.done.map(({ askedAt, doneAt }) => doneAt - askedAt);
  const [p50, p99] = [percentile(times, 0.5).toFixed(0), percentile(times, 0.99).toFixed(0)];
  report(`${load.done.length} turns, p50 ${p50} ms, p99 ${p99} ms; ${runs.length} runs so far`);
};

/** A wrong clock may not change how a turn or a run ends. */
const assertHolds = async (what: string): Promise<void> => {
  const verdict = checkCommands({ turns, runs }, await readFacts(stack), ALL_COMPLETE);
  assertCommandsHold(`${what} (seed ${seed})`, verdict, ALL_COMPLETE);
  expect(verdict.runEnds).toEqual({ completed: runs.length });
};

const msToMonthEnd = (): number => {
  const now = new Date();
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) - now.getTime();
};

describe(`wrong clocks, by seed ${seed}`, () => {
  it('lose and repeat nothing when processes differ by ten minutes', async () => {
    setAll((nth) => (nth % 2 === 0 ? 5 : -5) * MINUTE);
    await runUnderLoad(() => letTimePass(LOAD_MS / 2));
    await assertHolds('clocks apart');
    // Proof that the clocks were wrong: times that services wrote differ from this process's time.
    const requested = await readEvents(stack, { type: 'TurnRequested' });
    const offsets = requested.flatMap(({ data }) => {
      const at = Date.parse(String(data['requestedAt']));
      return Number.isNaN(at) ? [] : [(at - Date.now()) / MINUTE];
    });
    expect(offsets.some((minutes) => Math.abs(minutes) > 4)).toBe(true);
  });

  it('lose and repeat nothing when they jump by an hour, back, and over the end of the month', async () => {
    const random = createSeededRandom(seed);
    await runUnderLoad(async () => {
      const endsAt = performance.now() + LOAD_MS;
      while (performance.now() < endsAt) {
        const jumps = [0, 60 * MINUTE, -60 * MINUTE, 5 * MINUTE, -5 * MINUTE, msToMonthEnd() - 1_000];
        clocks.set(random.pick(PROCESSES), random.pick(jumps));
        await letTimePass(random.between(200, 1_500));
      }
    });
    setAll(() => 0);
    await assertHolds('clocks that jump');
  });

  it('let an approval expire once', async () => {
    setAll((nth) => (nth % 2 === 0 ? 1 : -1) * EXPIRES_S * 1_000);
    const place = { channel: 'test', account: 'clocks', agent: 'gpt', content: 'calculate' };
    const streams = Array.from({ length: 4 }, (_, nth) =>
      client.stream('chat.send', { ...place, peer: `a${nth}` }),
    );
    await Promise.all(streams.map((stream) => stream.done()));
    setAll(() => 0);
    const ends = await waitForValue('the expired approvals', async () => {
      const expired = await readEvents(stack, { type: 'ApprovalExpired' });
      return expired.length >= streams.length ? expired : undefined;
    });
    expect(ends).toHaveLength(streams.length);
  });

  it('leave a log that passes the audit', async () =>
    expect((await auditUntilQuiet(stack)).output).toContain('everything holds'));
});
