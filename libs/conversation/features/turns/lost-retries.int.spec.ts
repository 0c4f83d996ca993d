import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { transient } from '@antiphon/kernel';
import { createTestDatabase } from '@antiphon/testing';
import { newAddress, submitTo, until } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { createRunsWorld } from '@antiphon/agent-features/testing/runs-world';
import type { RunsWorld } from '@antiphon/agent-features/testing/runs-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(60_000);

/** Delay of a retry, long enough for Temporal to lose its store before it. */
const PATIENT = { maxAttempts: 2, backoffMs: 6_000, maxBackoffMs: 6_000, onTimeout: false };

let world: RunsWorld;
let agents: AgentWorld;
let answer: AgentWorld['responders']['tool'];
beforeAll(async () => {
  world = await createRunsWorld(
    await createTestDatabase(),
    process.env['ANTIPHON_TEST_NATS_URL'] ?? '',
    process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? '',
  );
  ({ agents } = world);
  answer = agents.responders.tool;
  agents.responders.tools = [echoTool(true, 'patient', PATIENT)];
  agents.model.reply = async ({ messages }) =>
    messages.at(-1)?.role === 'tool' ? says('done') : asksFor({ name: 'patient', input: {} });
});
afterAll(() => world?.close());

describe('deferred calls while Temporal loses its store', () => {
  const CALLS = 3;
  const workflowOf = (callId: string) => world.temporal.workflow.getHandle(`tool/${callId}`);
  /** Describes a Temporal workflow; null if there is none. */
  const found = (callId: string) =>
    workflowOf(callId)
      .describe()
      .catch((error: unknown) => {
        if ((error as Error).name === 'WorkflowNotFoundError') return null;
        throw error;
      });

  it('get new workflows under the same ids and are retried once', async () => {
    let losses = CALLS;
    agents.responders.tool = (request) =>
      losses-- > 0 ? Promise.reject(transient('SANDBOX.LOST', 'the sandbox stopped')) : answer(request);
    const agent = world.process({}, { times: { leaseMs: 3_000, sweepMs: 50, idleMs: 300 } });
    await until(() => agent.worker.isPolling(), 30_000);
    const submitted = Array.from({ length: CALLS }, () => submitTo(agent, { address: newAddress() }));
    const sessions = (await Promise.all(submitted)).map(({ sessionId }) => sessionId);
    const callIds = await Promise.all(
      sessions.map((sessionId) =>
        until(async () => {
          const last = (await agents.events(sessionId)).at(-1);
          return last?.type === 'ToolCallDeferred' && String(last.data['callId']);
        }),
      ),
    );
    const { namespace } = world.temporal.options;
    const lost = await Promise.all(
      callIds.map(async (callId) => {
        const { runId } = await until(() => found(callId).then((one) => one ?? false));
        const workflowExecution = { workflowId: `tool/${callId}`, runId };
        await world.temporal.workflowService.deleteWorkflowExecution({ namespace, workflowExecution });
        return runId;
      }),
    );
    const again = await Promise.all(
      callIds.map((callId, index) =>
        until(async () => {
          const one = await found(callId);
          return one !== null && one.runId !== lost[index] && one.runId;
        }, 30_000),
      ),
    );
    expect(new Set([...lost, ...again]).size).toBe(2 * CALLS);
    for (const sessionId of sessions) {
      const types = (await agents.ended(sessionId)).map(({ type }) => type);
      expect(types.filter((type) => type.startsWith('ToolCall'))).toEqual([
        ...['ToolCallRequested', 'ToolCallDeferred', 'ToolCallCompleted'],
      ]);
      expect(types.at(-1)).toBe('TurnCompleted');
    }
    const keysAsked = agents.responders.asked.tool.map(({ idempotencyKey }) => idempotencyKey);
    expect(keysAsked.sort()).toEqual([...callIds, ...callIds].sort());
    for (const callId of callIds) await workflowOf(callId).result();
    await agent.stop();
  });
});
