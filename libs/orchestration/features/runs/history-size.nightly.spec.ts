import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { WORKFLOW_LIMITS } from '@antiphon/contracts/agent';
import { transient } from '@antiphon/kernel';
import { createTestDatabase } from '@antiphon/testing';
import { HISTORY_BYTES } from '@antiphon/testing/faults';
import { newAddress, submitTo, testConfig, until } from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { createRunsWorld } from '@antiphon/agent-features/testing/runs-world';
import type { RunsProcess, RunsWorld } from '@antiphon/agent-features/testing/runs-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(600_000);

/** Maximum number of attempts that a tool can declare. */
const TRIES = 10;
/** A history with outputs would contain this 64 times. */
const OUTPUT = 'x'.repeat(40_000);

let world: RunsWorld;
let agent: RunsProcess;
beforeAll(async () => {
  world = await createRunsWorld(
    await createTestDatabase(),
    process.env['ANTIPHON_TEST_NATS_URL'] ?? '',
    process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? '',
  );
  const policy = { maxAttempts: TRIES, backoffMs: 10, maxBackoffMs: 10, onTimeout: true };
  world.agents.responders.tools = [echoTool(true, 'echo', policy)];
  agent = world.process();
  await until(() => agent.worker.isPolling(), 60_000);
});
afterAll(() => world?.close());

const sizeOf = async (workflowId: string) => {
  const { historySize = Number.NaN, historyLength } = await world.temporal.workflow
    .getHandle(workflowId)
    .describe();
  process.stdout.write(`${workflowId}: ${historySize} bytes, ${historyLength} events\n`);
  return historySize;
};

describe('the history of a Temporal workflow', () => {
  it('stays small for the largest run, with all tasks ready at once', async () => {
    world.agents.model.reply = async () => says(OUTPUT);
    const idOf = (nth: number): string => `n${nth}`.padEnd(63, '-');
    const nodes = Array.from({ length: WORKFLOW_LIMITS.nodes }, (_, nth) => ({
      ...{ id: idOf(nth), agent: testConfig().agents[0]?.id ?? 'main', prompt: 'continue' },
      needs: nth === 0 ? [] : [idOf(0)],
    }));
    const runId = await world.start(agent, JSON.stringify({ name: 'wide', nodes }));
    const handle = world.temporal.workflow.getHandle(`run/${runId}`);
    await until(
      () =>
        handle.describe().then(
          () => true,
          () => false,
        ),
      60_000,
    );
    await handle.result();
    expect((await world.view(agent, runId)).status).toBe('completed');
    expect(await sizeOf(`run/${runId}`)).toBeLessThan(HISTORY_BYTES);
  });

  it(`stays small for a tool call that is tried ${TRIES} times`, async () => {
    const { responders, model } = world.agents;
    let calls = 0;
    responders.tool = async () => {
      calls++;
      throw transient('SANDBOX.LOST', 'the sandbox stopped during the call');
    };
    model.reply = async ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? says('done') : asksFor({ name: 'echo', input: { text: OUTPUT } });
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    const events = await world.agents.ended(sessionId);
    const request = events.find(({ type }) => type === 'ToolCallRequested');
    expect(calls).toBe(TRIES);
    expect(await sizeOf(`tool/${String(request?.data['callId'])}`)).toBeLessThan(HISTORY_BYTES);
  });
});
