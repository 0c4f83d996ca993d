import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';
import { scriptedConfig, startQuickStack, waitForValue } from './stack-under-test.js';

jest.setTimeout(180_000);

const CONFIG = `${scriptedConfig(`
[[agents]]
id = "main"
provider = "scripted"
model = "scripted"
`)}
[retention]
max_log_bytes = 1048576
`;

let stack: TestStack;
beforeAll(async () => {
  stack = await startQuickStack(CONFIG);
}, 120_000);
afterAll(() => stack?.stop());

const call = async (method: string, path: string, body?: object) => {
  const response = await fetch(`${stack.gatewayUrl}/api/v1${path}`, {
    method,
    ...(body ? { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) } : {}),
  });
  return { status: response.status, text: await response.text() };
};

describe('a workspace whose log has reached its quota', () => {
  it('refuses new work with LOG.QUOTA, and serves reads, deletions and the rest of its work', async () => {
    const file = '/workspaces/default/files/kept.md';
    expect((await call('PUT', file, { text: 'kept' })).status).toBe(200);
    const client = await connectClient(stack.wsUrl);
    const address = { channel: 'web', account: 'main', peer: randomUUID() };
    // Texts that do not compress: each turn stores some 100 KB.
    const text = (): string => Array.from({ length: 2_500 }, () => randomUUID()).join('');
    let sessionId = '';
    await waitForValue('the refusal of a turn', async () => {
      const turn = client.stream('chat.send', { ...address, content: text() });
      const ended = turn.waitFor('its end', ({ event }) => event === 'done');
      const refused: unknown = await ended.then(
        () => undefined,
        (error: unknown) => error,
      );
      if (refused === undefined) return undefined;
      expect(JSON.stringify(refused, ['rpc', 'code', 'data'])).toContain('LOG.QUOTA');
      return true;
    });
    const sessions = await call('GET', '/sessions');
    sessionId = (JSON.parse(sessions.text) as { sessions: { id: string }[] }).sessions[0]?.id ?? '';
    for (const [method, path, body] of [
      ['POST', '/tasks', { prompt: 'more' }],
      ['POST', '/agents', { name: 'Ann' }],
      ['PUT', file, { text: 'more' }],
      ['POST', '/workspaces/default/chats', { name: 'more', agent: 'main' }],
    ] as const) {
      const { status, text: problem } = await call(method, path, body);
      expect([path, status, problem.includes('LOG.QUOTA')]).toEqual([path, 429, true]);
    }
    for (const path of [`/sessions/${sessionId}`, `/sessions/${sessionId}/turns`, '/events', '/agents', file])
      expect([path, (await call('GET', path)).status]).toEqual([path, 200]);
    const cancelled = await client.call('session.cancel', { sessionId });
    expect(cancelled).toMatchObject({ cancelled: false });
    expect((await call('DELETE', file)).status).toBe(200);
    await client.close();
  });
});
