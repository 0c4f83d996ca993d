import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { connectClient, textOf, type SocketClient } from '@antiphon/testing/client';
import { openAiStream, startHttpProvider, type HttpProvider } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import type { RunView } from '@antiphon/contracts/agent';
import { readEvents, runCli, startStackWith, waitForRoot, waitForValue } from './stack-under-test.js';

jest.setTimeout(400_000);

/** Time until the headers of an answer, while its model loads, ms. */
const LOADING_MS = 75_000;
/** Pause between two pieces of an answer, ms. */
const PAUSE_MS = 40_000;

const configFor = (url: string): string => `
[gateway]
port = 0
[[providers]]
name = "local"
kind = "ollama"
base_url = "${url}"
[[agents]]
id = "main"
provider = "local"
model = "qwen3:32b"
`;

let provider: HttpProvider;
let stack: TestStack;
let client: SocketClient;

beforeAll(async () => {
  const [first = '', ...rest] = openAiStream('qwen3:32b', { text: ['at ', 'last'] });
  provider = await startHttpProvider(async (_request, response) => {
    await letTimePass(LOADING_MS);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(first);
    await letTimePass(PAUSE_MS);
    response.end(rest.join(''));
  });
  stack = await startStackWith(configFor(provider.url), {}, { shareDatabase: true });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await provider?.close();
});

const startRun = async (): Promise<string> => {
  const workflow = { name: 'slow', nodes: [{ id: 'only', agent: 'main', prompt: 'think' }] };
  const answer = await fetch(`${stack.gatewayUrl}/api/v1/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ workflow }),
  });
  return ((await answer.json()) as RunView).id;
};

const endOfRun = (id: string): Promise<RunView> =>
  waitForValue(
    'the end of the run',
    async () => {
      const run = (await (await fetch(`${stack.gatewayUrl}/api/v1/runs/${id}`)).json()) as RunView;
      return run.status === 'running' ? undefined : run;
    },
    300_000,
  );

// @shows U68
it('a model that loads for 75 s and pauses for 40 s answers a turn, a command and a run, each by one call', async () => {
  const params = { channel: 'test', account: 'slow', peer: 'p', content: 'hello' };
  const turn = client.stream('chat.send', params);
  const run = startRun().then(endOfRun);
  const command = runCli(stack, ['chat', 'hello']);
  await turn.waitFor('the end of the turn', ({ event }) => event === 'accepted');
  const { code, stdout } = await command;
  expect([code, stdout.trim()]).toEqual([0, 'at last']);
  expect((await run).status).toBe('completed');
  expect(textOf(await turn.done())).toBe('at last');
  expect(provider.requests).toHaveLength(3);
  const events = await readEvents(stack);
  expect(events.filter(({ type }) => /^(?:ModelCallAborted|AgentUnresponsive)$/.test(type))).toEqual([]);
  await waitForRoot(stack);
  expect((await runCli(stack, ['audit'])).code).toBe(0);
});
