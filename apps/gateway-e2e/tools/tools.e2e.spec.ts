import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { ApprovalView, RunView } from '@antiphon/contracts/agent';
import { runCli, waitForValue, readEvents } from '../stack-under-test.js';
import { ToolKills } from './tool-kills.js';

jest.setTimeout(180_000);

let tools: ToolKills;
beforeAll(async () => {
  tools = await ToolKills.start();
});
afterAll(() => tools?.close());

describe('a plug-in that declares a timeout and retries', () => {
  const POLICY = { maxAttempts: 3, backoffMs: 100, maxBackoffMs: 1_000, onTimeout: true };
  const count = (below: string) => tools.turn([{ name: 'primes', input: { below } }], []);

  it('gets three tries of half a second each, and then fails', async () => {
    const { events } = await count('999999999999');
    const calls = events.filter(({ type }) => type.startsWith('ToolCall'));
    expect(calls[0]?.data).toMatchObject({ idempotent: true, retry: POLICY });
    expect(calls.slice(1)).toMatchObject([
      { type: 'ToolCallDeferred', data: { reason: 'timed_out' } },
      { type: 'ToolCallDeferred', data: { reason: 'timed_out' } },
      {
        type: 'ToolCallFailed',
        data: { code: 'TOOL.TIMEOUT', cause: { kind: 'tool_timeout', timeoutMs: 500 } },
      },
    ]);
    expect(events.at(-1)?.type).toBe('TurnCompleted');
  });
});

describe('a run whose task waits for the approval of a tool call', () => {
  const CAREFUL = {
    name: 'careful',
    nodes: [
      { id: 'ask', agent: 'careful', prompt: '/tool calculator {"expression":"40 + 2"}' },
      { id: 'after', agent: 'careful', needs: ['ask'], prompt: 'after {{nodes.ask.output}}' },
    ],
  };
  const http = async <T>(path: string, body?: unknown): Promise<T> => {
    const headers = { 'content-type': 'application/json' };
    const post = body === undefined ? {} : { method: 'POST', headers, body: JSON.stringify(body) };
    const answer = await fetch(`${tools.stack.gatewayUrl}/api/v1${path}`, post);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  };
  const show = (id: string) => http<RunView>(`/runs/${id}`);
  const ask = async () => {
    const { id } = await http<RunView>('/runs', { workflow: CAREFUL });
    const approval = await waitForValue('the approval', async () => {
      const [first] = (await show(id)).tasks;
      const { approvals } = await http<{ approvals: ApprovalView[] }>('/approvals?status=pending');
      return approvals.find(({ sessionId }) => sessionId === first?.sessionId);
    });
    return { id, approval };
  };
  const answer = (approvalId: string, decision: 'approve' | 'deny') =>
    waitForValue('the recorded answer', () =>
      http(`/approvals/${approvalId}/answer`, { decision }).catch(() => undefined),
    );
  const ended = (id: string) =>
    waitForValue(
      'the end of the run',
      async () => {
        const run = await show(id).catch(() => undefined);
        return run && run.status !== 'running' ? run : undefined;
      },
      90_000,
    );
  const toolEvents = async (sessionId: string): Promise<string[]> =>
    (await readEvents(tools.stack, { stream: `session-${sessionId}` }))
      .map(({ type }) => type)
      .filter((type) => /^(Approval|ToolCall)/.test(type));

  it('continues after the answer, and after kill -9 of the agent while it waits', async () => {
    const { id, approval } = await ask();
    process.kill(tools.stack.stackJson().services.agent[0]?.pid ?? 0, 'SIGKILL');
    await answer(approval.id, 'approve');
    const { tasks } = await ended(id);
    expect(tasks.map(({ status }) => status)).toEqual(['completed', 'completed']);
    expect(tasks[1]?.output).toContain('42');
    expect(await toolEvents(approval.sessionId)).toEqual([
      ...['ApprovalRequested', 'ApprovalGranted', 'ToolCallRequested', 'ToolCallCompleted'],
    ]);
  });

  it('continues without the call when it is denied', async () => {
    const { id, approval } = await ask();
    await answer(approval.id, 'deny');
    expect((await ended(id)).status).toBe('completed');
    expect(await toolEvents(approval.sessionId)).toEqual(['ApprovalRequested', 'ApprovalDenied']);
  });
});

describe('the log of these calls', () => {
  it('passes the audit', async () => {
    const audit = await runCli(tools.stack, ['audit']);
    expect([audit.code, audit.stdout.split('\n').at(-2)]).toEqual([0, 'everything holds']);
  });
});
