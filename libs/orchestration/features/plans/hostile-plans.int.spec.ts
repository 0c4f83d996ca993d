import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { createAgentWorld } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';
import { createPlansWorld } from '@antiphon/agent-features/testing/plans-world';

let world: AgentWorld;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
}, 60_000);
afterAll(() => world.close(), 30_000);

it('a plan with a line of 150,000 blanks is refused to its reader, and the loop is held for no second', async () => {
  const plans = createPlansWorld(world);
  const agent = plans.start();
  await plans.write(agent, 'blanks.plan.md', `- [ ] a${' '.repeat(150_000)}b\n`);
  await plans.write(agent, 'other.plan.md', '- [ ] one\n');
  let longest = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }, 5);
  try {
    const [hostile, other] = await Promise.allSettled([
      plans.show(agent, 'blanks.plan.md'),
      plans.show(agent, 'other.plan.md'),
    ]);
    expect(hostile).toMatchObject({ reason: { code: 'PLAN.TOO_LARGE' } });
    expect(other).toMatchObject({ value: { steps: [{ text: 'one' }] } });
  } finally {
    clearInterval(timer);
    await plans.stopAll();
  }
  // It was held for 35 s, until the supervisor killed the process.
  expect(longest).toBeLessThan(1_000);
}, 60_000);
