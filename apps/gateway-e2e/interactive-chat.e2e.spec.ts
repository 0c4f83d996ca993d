import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { TestStack } from '@antiphon/testing/stack';
import { CALCULATION, startTypedCli, type TypedCli } from './cli-world.js';
import { runCli, scriptedConfig, startQuickStack, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

const CONFIG = scriptedConfig(`
[[agents]]
id = "main"
provider = "scripted"
tools = ["calculator", "write", "read", "edit"]

[[agents]]
id = "guarded"
provider = "scripted"
tools = ["calculator"]
[[agents.approvals]]
tool = "calculator"
`);

let stack: TestStack;
const started: TypedCli[] = [];
beforeAll(async () => {
  stack = await startQuickStack(CONFIG);
});
afterAll(() => stack?.stop());

const chat = (...options: string[]): TypedCli => {
  const typed = startTypedCli(['chat', ...options], { ANTIPHON_HOME: stack.home }, stack.home);
  started.push(typed);
  return typed;
};
const read = async (name: string, format = 'md'): Promise<string> =>
  (await fetch(`${stack.gatewayUrl}/api/v1/workspaces/default/chats/${name}?format=${format}`)).text();
const statusOf = async (name: string): Promise<string | undefined> => {
  const { messages } = JSON.parse(await read(name, 'json')) as { messages: { status?: string }[] };
  return messages.at(-1)?.status;
};
const tool = (name: string, input: object): string => `/tool ${name} ${JSON.stringify(input)}`;

describe('an interactive antiphon chat', () => {
  it('streams answers, shows calls with their results and an edit as its lines, and ends with /quit', async () => {
    const typed = chat('--chat', 'lines');
    await typed.waitFor('chat "lines" with main');
    typed.type('Hello there');
    await typed.waitFor('[scripted] Hello there');
    typed.type(CALCULATION);
    await typed.waitFor('[calculator {"expression":"19+23"}]\n[= 42]');
    typed.type(tool('write', { path: 'tides.md', content: 'low at six\n' }));
    await typed.waitFor('[= ');
    typed.type(tool('read', { path: 'tides.md' }));
    await typed.waitFor('[= ');
    typed.type(tool('edit', { path: 'tides.md', old: 'low at six', new: 'low at nine' }));
    await typed.waitFor('[edit tides.md]\n- low at six\n+ low at nine\n[= ');
    typed.type('/quit');
    expect(await typed.ended).toBe(0);
    expect(typed.err()).toContain('continue with: antiphon chat --chat "lines"');
  });

  it('continues a chat by its name or its id with the text so far, and ends with its input', async () => {
    const first = chat('--chat', 'resumed');
    await first.waitFor('chat "resumed"');
    first.type('remember the tide');
    await first.waitFor('[scripted] remember the tide');
    first.endInput();
    expect(await first.ended).toBe(0);
    const { chatId } = JSON.parse(await read('resumed', 'json')) as { chatId: string };
    for (const name of ['resumed', chatId]) {
      const again = chat('--chat', name);
      await again.waitFor('# resumed');
      await again.waitFor('remember the tide');
      again.endInput();
      expect(await again.ended).toBe(0);
    }
  });

  it('asks for an approval in place, where y lets the call run and n does not', async () => {
    const typed = chat('--chat', 'asked', '--agent', 'guarded');
    await typed.waitFor('chat "asked" with guarded');
    typed.type(CALCULATION);
    await typed.waitFor('[waits for an approval]\n[calculator {"expression":"19+23"}]');
    typed.type('y');
    await typed.waitFor('[= 42]');
    await waitForValue('the end of the turn', async () =>
      (await statusOf('asked')) === 'completed' ? true : undefined,
    );
    typed.type(CALCULATION);
    await typed.waitFor('[waits for an approval]');
    typed.type('n');
    await typed.waitFor('[denied]');
    typed.endInput();
    expect(await typed.ended).toBe(0);
    expect(typed.out().match(/= 42/g)).toHaveLength(1);
  });

  it('takes no earlier line as an answer, and leaves an approval that was answered elsewhere', async () => {
    const typed = chat('--chat', 'elsewhere', '--agent', 'guarded');
    await typed.waitFor('chat "elsewhere"');
    typed.type(CALCULATION);
    typed.type('n');
    await typed.waitFor('[waits for an approval]');
    // The list is a projection, and may come after the frame that the terminal shows.
    const { id, digest } = await waitForValue('the pending approval', async () => {
      const list = await fetch(`${stack.gatewayUrl}/api/v1/approvals?status=pending`);
      const { approvals } = (await list.json()) as { approvals: { id: string; digest: string }[] };
      return approvals.length === 1 ? approvals[0] : undefined;
    });
    const answered = await fetch(`${stack.gatewayUrl}/api/v1/approvals/${id}/answer`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ decision: 'approve', digest }),
    });
    expect(answered.status).toBe(200);
    await typed.waitFor('[granted]');
    await typed.waitFor('[= 42]');
    // The earlier line is the next message.
    await typed.waitFor('[scripted] n');
    typed.type('y');
    await typed.waitFor('nothing was sent');
    typed.type('/quit');
    expect(await typed.ended).toBe(0);
    expect(await read('elsewhere')).not.toContain('\ny\n');
  });

  it('detaches at the first Ctrl-C and prints how to come back, while the turn waits on', async () => {
    const typed = chat('--chat', 'left', '--agent', 'guarded');
    await typed.waitFor('chat "left"');
    typed.type(CALCULATION);
    await typed.waitFor('[waits for an approval]');
    typed.interrupt();
    expect(await typed.ended).toBe(130);
    expect(typed.err()).toMatch(
      /detaching; the turn continues[^]*continue with: antiphon chat --chat "left"/,
    );
    expect(await statusOf('left')).toBe('open');
    // Back in the chat, the open approval is asked for again.
    const again = chat('--chat', 'left');
    await again.waitFor('[waits for an approval]');
    again.type('y');
    await again.waitFor('[= 42]');
    again.endInput();
    expect(await again.ended).toBe(0);
  });

  it('cancels the turn at a second Ctrl-C', async () => {
    const typed = chat('--chat', 'stopped', '--agent', 'guarded');
    await typed.waitFor('chat "stopped"');
    typed.type(CALCULATION);
    await typed.waitFor('[waits for an approval]');
    typed.interrupt();
    await typed.waitFor('Ctrl-C again cancels it');
    typed.interrupt();
    expect(await typed.ended).toBe(130);
    await waitForValue('the cancelled turn', async () =>
      (await statusOf('stopped')) === 'cancelled' ? true : undefined,
    );
  });

  it('says that a role is unknown, and exits with the code of a failure', async () => {
    const { code, stderr } = await runCli(stack, ['chat', '--role', 'nothing']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('system/agents/nothing.md')]);
  });
});
