import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { CallOutcome } from '@antiphon/contracts/metering';
import { openMetering } from '../metering-fixtures.spec.js';
import { rebuildBalances } from './rebuild-balances.js';

let metering: Awaited<ReturnType<typeof openMetering>>;
beforeAll(async () => {
  metering = await openMetering();
});
afterAll(() => metering.close());

/** A small generator with a seed, so that a failure can be played again. */
const randomFrom = (seed: number) => {
  let state = seed;
  return (below: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
};

const overBound: CallOutcome = { kind: 'used', inputTokens: 900, outputTokens: 100, estimated: true };
const outcomes: readonly CallOutcome[] = [
  { kind: 'used', inputTokens: 90, outputTokens: 10, estimated: false },
  { kind: 'used', inputTokens: 0, outputTokens: 333, estimated: true },
  { kind: 'unknown' },
  { kind: 'not_dispatched', reason: 'provider_unreachable' },
];

it('rebuilds the rows of live traffic from the log, none below zero', async () => {
  const random = randomFrom(20_261_121);
  const limits = { session: 12_000, daily: 40_000, dailyMicroUsd: 300_000 };
  const price = { inputMicroUsdPerMtok: 3_333_333, outputMicroUsdPerMtok: 7_777_777 };
  const processes = [1, 2].map(() => metering.start({ limits, priceOf: () => price }));
  // One for each worker, because the attempts of a session grow.
  const sessions = Array.from({ length: 12 }, () => randomUUID());
  const worker = async (n: number): Promise<void> => {
    const { reserve, settle, endReservations, ledger } = processes[n % 2]!;
    for (let i = 0; i < 25; i++) {
      const expiresAt = new Date(metering.clock.time + (random(4) === 0 ? -1 : 600_000)).toISOString();
      const request = metering.request({
        sessionId: sessions[n]!,
        attempt: i + 1,
        expiresAt,
      });
      const { granted } = await reserve(request);
      for (const scopeKey of granted
        ? []
        : [`session/${request.sessionId}`, 'day/2026-11-21', 'day/2026-11-22'])
        await ledger.submit('default', { type: 'Unfreeze', scopeKey, by: 'spec', reason: 'seen' });
      if (random(10) === 0) metering.clock.time += 4 * 3_600_000;
      const outcome = random(15) === 0 ? overBound : outcomes[random(4)]!;
      const settlement = { workspace: 'default', reservationId: request.reservationId, outcome };
      if (granted && random(5) > 0) await settle(settlement);
      if (random(8) === 0) await endReservations.sweep();
      if (granted && random(5) === 0) await settle(settlement);
    }
  };
  await Promise.all(Array.from({ length: 12 }, (_, n) => worker(n)));
  const live = await metering.rows();
  expect(live.reservations.length).toBeGreaterThan(30);
  const events = await rebuildBalances(processes[0]!.pool);
  expect(events).toBeGreaterThan(live.reservations.length);
  const rebuilt = await metering.rows();
  // A scope that has refused only has a row of zeros; a rebuild does not make it.
  const spoken = live.balances.filter((row) =>
    Object.entries(row).some(([column, value]) => /tokens|usd/.test(column) && value !== '0'),
  );
  expect(
    rebuilt.balances.filter((row) => spoken.some((one) => one['scope_key'] === row['scope_key'])),
  ).toEqual(spoken);
  expect(rebuilt.reservations).toEqual(live.reservations);
  for (const row of live.balances)
    for (const [column, value] of Object.entries(row))
      if (/tokens|usd/.test(column)) expect(Number(value)).toBeGreaterThanOrEqual(0);
  await expect(rebuildBalances(processes[1]!.pool)).resolves.toBe(events);
});
