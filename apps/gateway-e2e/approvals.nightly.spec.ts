import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, textOf, type SocketClient } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { runCli, waitForValue, readEvents, startStackWith, twoVendorConfig } from './stack-under-test.js';

jest.setTimeout(180_000);

const GUARDED = `
[[agents.approvals]]
tool = "calculator"
`;

let mock: MockModel;
let stack: TestStack;
let client: SocketClient;

beforeAll(async () => {
  mock = await startMockModel(({ toolResults }) =>
    toolResults.length > 0
      ? { text: [`it says: ${toolResults.at(-1)}`] }
      : { tools: [{ id: 'call_1', name: 'calculator', input: { expression: '40 + 2' } }] },
  );
  stack = await startStackWith(`${twoVendorConfig(mock.url)}${GUARDED}`, { gateway: 2 });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
});

interface Asked {
  readonly approvalId: string;
  readonly digest: string;
}

const ask = async (peer: string) => {
  const place = { channel: 'test', account: 'approvals', peer, agent: 'gpt' };
  const stream = client.stream('chat.send', { ...place, content: 'what is 40 + 2?' });
  const accepted = await stream.waitFor('accepted', ({ event }) => event === 'accepted');
  const asked = await stream.waitFor('the approval', ({ event }) => event === 'approval');
  return { stream, accepted: accepted.data as { sessionId: string }, asked: asked.data as Asked };
};
const eventsOf = async (sessionId: string, type: RegExp) =>
  (await readEvents(stack, { stream: `session-${sessionId}` })).filter((event) => type.test(event.type));

describe('a tool call that waits for an approval', () => {
  it('is approved on the command line, and its turn completes', async () => {
    const { stream, asked } = await ask('cli');
    const listed = await waitForValue('the approval in the list', async () => {
      const { stdout } = await runCli(stack, ['approvals', 'list', '--json']);
      const { approvals } = JSON.parse(stdout) as {
        approvals: { id: string; tool: string; input: unknown }[];
      };
      return approvals.find(({ id }) => id === asked.approvalId);
    });
    expect(listed).toMatchObject({ tool: 'calculator', input: { expression: '40 + 2' } });
    const wrong = await runCli(stack, ['approvals', 'approve', asked.approvalId, '--digest', 'no', '--json']);
    expect([wrong.code, wrong.stdout]).toEqual([1, expect.stringContaining('APPROVAL.DIGEST_MISMATCH')]);
    const right = ['approvals', 'approve', asked.approvalId, '--digest', asked.digest];
    expect(await runCli(stack, right)).toMatchObject({ code: 0 });
    const frames = await stream.done();
    expect(textOf(frames)).toBe('it says: 42');
    expect(frames.map(({ event }) => event)).toEqual([
      ...['accepted', 'tool_use', 'usage', 'approval', 'approval_update', 'tool_result'],
      ...['text', 'usage', 'done'],
    ]);
    expect(await runCli(stack, ['approvals', 'deny', asked.approvalId])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('was granted by'),
    });
  });

  it('gets one decision from answers at two gateways at once', async () => {
    const { stream, accepted, asked } = await ask('race');
    const gateways = stack.stackJson().urls.gateways;
    expect(gateways).toHaveLength(2);
    const decisions = ['approve', 'deny', 'deny', 'approve'];
    const answers = await Promise.all(
      decisions.map((decision, index) =>
        fetch(`${gateways[index % gateways.length]}/api/v1/approvals/${asked.approvalId}/answer`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ decision }),
        }),
      ),
    );
    await stream.done();
    const [first, ...more] = await eventsOf(accepted.sessionId, /^Approval(Granted|Denied)$/);
    expect(more).toEqual([]);
    const won = first?.type === 'ApprovalGranted' ? 'approve' : 'deny';
    expect(answers.map(({ status }) => status)).toEqual(
      decisions.map((decision) => (decision === won ? 200 : 409)),
    );
  });

  it('survives kill -9 of every service, and is made once after the answer', async () => {
    const { accepted, asked } = await ask('kill');
    for (const instances of Object.values(stack.stackJson().services))
      for (const { pid } of instances) if (pid) process.kill(pid, 'SIGKILL');
    await client.close().catch(() => undefined);
    client = await waitForValue('a gateway', () => connectClient(stack.wsUrl).catch(() => undefined));
    const recorded = await waitForValue('the answer', () =>
      client
        .call('approval.answer', { approvalId: asked.approvalId, decision: 'approve', reason: 'go' })
        .catch(() => undefined),
    );
    expect(recorded).toEqual({ recorded: true });
    await waitForValue('the end', async () => (await eventsOf(accepted.sessionId, /^TurnCompleted$/))[0]);
    expect(await eventsOf(accepted.sessionId, /^ToolCall(Requested|Completed)$/)).toHaveLength(2);
    expect(await runCli(stack, ['audit'])).toMatchObject({ code: 0 });
  });
});
