import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '@antiphon/testing';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import {
  checkFigure,
  countEnds,
  noiseAllowance,
  percentile,
  report,
  startLoad,
  summarizeRatios,
} from '@antiphon/testing/load';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import { startStackWith, twoVendorConfig, waitForAccepted } from './stack-under-test.js';

/** Promised maximum of p95 of a turn next to a wedged session, over p95 without one. */
const PROMISED_RATIO = 1.1;
/**
 * Each round has two blocks without wedged sessions, whose ratio is the noise of the machine. The
 * bound rises by the upper end of the 95 % interval of that control. Above this cap the machine
 * shows nothing, and the bound stays.
 */
const MAX_ALLOWANCE = 1.3;
const ROUNDS = Number(process.env['ANTIPHON_WEDGED_ROUNDS'] ?? 16);
/** One wedged session is the promise; 16 show the cost of a provider that hangs for many. */
const CASES = [1, 16];
const BLOCK_MS = 4_000;
/** Pause between blocks, so that the turns of one are over before the next begins. */
const REST_MS = 500;

let mock: MockModel;
let stack: TestStack;
let client: SocketClient;
/** Number of calls that the provider has taken and never answers. */
let hanging = 0;

beforeAll(async () => {
  mock = await startMockModel(async ({ user }) => {
    if (user === 'wedge') await new Promise(() => hanging++);
    await letTimePass(20);
    return { text: ['You said: ', user] };
  });
  stack = await startStackWith(twoVendorConfig(mock.url));
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
});

/** Runs a block of load. Returns p95 of its turns, ms. */
const measureBlock = async (): Promise<number> => {
  await letTimePass(REST_MS);
  const load = startLoad({ wsUrls: [stack.wsUrl], sessions: 4, agent: 'gpt', pauseMs: 20 });
  await letTimePass(BLOCK_MS);
  await load.stop();
  expect(countEnds(load.done)).toEqual({ completed: load.done.length });
  return percentile(
    load.done.map(({ askedAt, doneAt }) => doneAt - askedAt),
    0.95,
  );
};

const measureBlockWithWedged = async (sessions: number, round: number): Promise<number> => {
  const address = { channel: 'test', account: 'wedged', agent: 'gpt', content: 'wedge' };
  const before = hanging;
  const wedged = Array.from({ length: sessions }, (_, nth) =>
    client.stream('chat.send', { ...address, peer: `${sessions}-${round}-${nth}` }),
  );
  const accepted = await Promise.all(wedged.map(waitForAccepted));
  // Their start costs as much as that of any turn; the block measures the time in which they hang.
  await until(() => hanging === before + sessions);
  const p95 = await measureBlock();
  for (const { sessionId } of accepted) await client.call('session.cancel', { sessionId });
  const ends = await Promise.all(wedged.map(async (stream) => (await stream.done()).at(-1)?.data));
  expect(ends).toEqual(wedged.map(() => expect.objectContaining({ status: 'cancelled' })));
  return p95;
};

/**
 * Measures a wedged block between two free ones: the slow changes of a machine affect all three
 * alike.
 */
const measureRound = async (sessions: number, round: number) => {
  const before = await measureBlock();
  const wedged = await measureBlockWithWedged(sessions, round);
  const after = await measureBlock();
  const [first, second] = round % 2 === 0 ? [before, after] : [after, before];
  return { ratio: wedged / Math.sqrt(before * after), control: second / first };
};

describe('sessions whose provider hangs', () => {
  beforeAll(async () => void (await measureBlock()));

  it.each(CASES)(
    'do not slow the others: %d of them',
    async (sessions) => {
      const ratios: number[] = [];
      const controls: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const { ratio, control } = await measureRound(sessions, round);
        ratios.push(ratio);
        controls.push(control);
      }
      const { median, low, high } = summarizeRatios(ratios);
      const allowance = noiseAllowance(controls, MAX_ALLOWANCE);
      const quartiles = `${low.toFixed(2)} to ${high.toFixed(2)}`;
      report(
        `${sessions} wedged: quartiles ${quartiles} over ${ROUNDS} rounds; noise ${allowance.toFixed(3)}`,
      );
      checkFigure({
        ...{ what: `${sessions} wedged: p95 of other turns`, value: median, unit: '×' },
        atMost: PROMISED_RATIO * allowance,
      });
    },
    600_000,
  );
});
