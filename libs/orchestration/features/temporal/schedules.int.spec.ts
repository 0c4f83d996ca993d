import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { expireReservations, rollBudgetPeriods } from '@antiphon/contracts/metering';
import { createTestDatabase } from '@antiphon/testing';
import { until } from '@antiphon/agent-features/testing/agent-world';
import { createRunsWorld } from '@antiphon/agent-features/testing/runs-world';
import type { RunsWorld } from '@antiphon/agent-features/testing/runs-world';

jest.setTimeout(60_000);

let world: RunsWorld;
const asked = { expire: 0, roll: 0 };
beforeAll(async () => {
  world = await createRunsWorld(
    await createTestDatabase(),
    process.env['ANTIPHON_TEST_NATS_URL'] ?? '',
    process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? '',
  );
  const answer = (subject: string, count: () => void, result: object) =>
    world.agents.nats.connection.subscribe(subject, {
      callback: (_error, message) => {
        count();
        message.respond(JSON.stringify({ ok: true, result }));
      },
    });
  answer(expireReservations.subject, () => asked.expire++, { ended: 1 });
  answer(rollBudgetPeriods.subject, () => asked.roll++, { ended: 0, periods: [] });
  await world.agents.nats.connection.flush();
});
afterAll(() => world?.close());

const NAMES = [
  'delete-old-rows',
  'expire-reservations',
  'learn-vendor-figures',
  'reconcile-runs',
  'roll-budget-periods',
  'sweep-turns',
];
const handle = (name: string) => world.temporal.schedule.getHandle(`${world.taskQueue}/${name}`);
const there = async (): Promise<string[]> => {
  const found = await Promise.all(
    NAMES.map((name) =>
      handle(name)
        .describe()
        .then(
          () => [name],
          () => [],
        ),
    ),
  );
  return found.flat();
};

describe('the schedules', () => {
  it('are created once, by the first process', async () => {
    const processes = [world.process(), world.process()];
    await until(() => processes.every(({ worker }) => worker.isPolling()), 30_000);
    await until(async () => (await there()).length === NAMES.length);
    expect(await there()).toEqual(NAMES);
  });

  it('expire reservations, roll budget periods, and take over abandoned turns', async () => {
    for (const name of NAMES) await handle(name).trigger();
    await until(() => asked.expire > 0 && asked.roll > 0);
    await until(async () => {
      const described = await Promise.all(NAMES.map((name) => handle(name).describe()));
      return described.every(({ info }) => info.recentActions.length > 0 && info.runningActions.length === 0);
    });
    for (const name of NAMES) {
      const [last] = (await handle(name).describe()).info.recentActions;
      if (last?.action.type !== 'startWorkflow') throw new Error(`${name} did nothing`);
      const fired = world.temporal.workflow.getHandle(last.action.workflow.workflowId);
      await fired.result();
      expect((await fired.describe()).status.name).toBe('COMPLETED');
    }
  });

  it('are created again after they were deleted, or Temporal was emptied', async () => {
    const process = world.process({ checkMs: 50 });
    await until(() => process.worker.isPolling(), 30_000);
    await handle('reconcile-runs').delete();
    await until(async () => (await there()).length === NAMES.length);
  });
});
