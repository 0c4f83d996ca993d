import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { REFUSED } from '@antiphon/contracts/metering';
import { callAborted, callStarted, openMetering } from '../metering-fixtures.spec.js';

jest.setTimeout(60_000);

const CALLS = 1_000;
/** Calls at once. The day has room for their bounds, and not for one more. */
const AT_ONCE = 8;
const price = { inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 };
const BOUND_MICRO_USD = 100 * 3 + 400 * 15;

let metering: Awaited<ReturnType<typeof openMetering>>;
beforeAll(async () => {
  metering = await openMetering();
});
afterAll(() => metering.close());

// @shows U71
it(`uses nothing of a day limit for ${CALLS} calls that their provider refuses`, async () => {
  const { reserve, settleBudget, read } = metering.start({
    limits: { dailyMicroUsd: AT_ONCE * BOUND_MICRO_USD },
    priceOf: () => price,
  });
  const refuse = async (): Promise<string> => {
    const call = metering.request();
    const { granted } = await reserve(call);
    expect(granted).toBe(true);
    await metering.sessionSays(call.sessionId, callStarted(call));
    const end = callAborted(call, true);
    const data = { ...end.data, reason: 'provider_error', refused: true };
    await metering.sessionSays(call.sessionId, { ...end, data } as SessionEvent);
    const { workspace, reservationId } = call;
    const outcome = { kind: 'not_dispatched' as const, reason: REFUSED };
    return (await settleBudget.handle({ workspace, reservationId, outcome })).status;
  };
  const ends = new Map<string, number>();
  const work = async (): Promise<void> => {
    for (let n = 0; n < CALLS / AT_ONCE; n += 1) {
      const status = await refuse();
      ends.set(status, (ends.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  expect([...ends]).toEqual([['released', CALLS]]);
  const day = (await read({ workspace: 'default' })).find(({ kind }) => kind === 'day');
  expect(day).toMatchObject({ settledMicroUsd: 0, reservedMicroUsd: 0, settledTokens: 0, reservedTokens: 0 });
  const all = Array.from({ length: AT_ONCE + 1 }, () => reserve(metering.request()));
  const granted = (await Promise.all(all)).filter((reply) => reply.granted);
  expect(granted).toHaveLength(AT_ONCE);
});
