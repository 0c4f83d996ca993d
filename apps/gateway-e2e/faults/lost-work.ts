import { sleep } from '@antiphon/kernel';
import { connectClient, type FrameStream, type SocketClient } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';
import { readEvents, waitForAccepted, waitForValue } from '../stack-under-test.js';

/** Time within which work that ends its process must be given up, ms. */
export const GIVEN_UP_WITHIN_MS = 60_000;

const POLL_MS = 200;

/** Configures two agents; each call of `deadly` ends its process by the failpoints of the stack. */
export const lostWorkConfig = (mockUrl: string): string => `
[gateway]
host = "127.0.0.1"
port = 0

[[providers]]
name = "openai"
kind = "openai"
base_url = "${mockUrl}/v1"
api_key_env = "E2E_PROVIDER_KEY"
${['deadly', 'quiet']
  .map(
    (id) => `
[[agents]]
id = "${id}"
name = "${id}"
provider = "openai"
model = "gpt-4o"
tools = ["ls", "plan_step", "echo"]
`,
  )
  .join('')}`;

export interface Answer {
  readonly status: number;
  readonly body: { readonly id?: string; readonly code?: string };
}

/** Sends a request; again while no service takes it, because the agent starts. */
export const send = async (
  { gatewayUrl }: TestStack,
  method: string,
  path: string,
  body: unknown,
): Promise<Answer> =>
  waitForValue(
    `an answer to ${method} ${path}`,
    async () => {
      const response = await fetch(`${gatewayUrl}/api/v1${path}`, {
        ...{ method, body: JSON.stringify(body) },
        headers: { 'content-type': 'application/json' },
      });
      const answer = { status: response.status, body: (await response.json()) as Answer['body'] };
      return answer.body.code === 'MESSAGING.NO_RESPONDERS' ? undefined : answer;
    },
    GIVEN_UP_WITHIN_MS,
  );

/** Sends a message to an agent; again while it is refused, because the agent starts. */
export const chat = async (
  client: SocketClient,
  params: Readonly<Record<string, string>>,
): Promise<{ stream: FrameStream; turnId: string }> =>
  waitForValue(
    'an accepted message',
    async () => {
      const stream = client.stream('chat.send', params);
      const accepted = await waitForAccepted(stream).catch(() => undefined);
      return accepted && { stream, turnId: accepted.turnId };
    },
    GIVEN_UP_WITHIN_MS,
  );

/** Waits for an event of a type whose data matches. */
export const waitForEvent = (
  stack: TestStack,
  type: string,
  isWanted: (data: Readonly<Record<string, unknown>>) => boolean,
) =>
  waitForValue(
    type,
    async () => {
      // The gateway may be without its agent for some time.
      const events = await readEvents(stack, { type }).catch(() => []);
      return events.find(({ data }) => isWanted(data));
    },
    GIVEN_UP_WITHIN_MS,
  );

/** Makes turns of an agent until a promise settles, at least one. Returns how they ended. */
export const turnsWhile = async (
  stack: TestStack,
  agent: string,
  until: Promise<unknown>,
): Promise<string[]> => {
  const ends: string[] = [];
  let isOver = false;
  void until.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  const client = await connectClient(stack.wsUrl);
  while (!isOver || ends.length === 0) {
    const address = { channel: 'test', account: 'lost', peer: `${agent}-${ends.length}` };
    const frames = await client
      .stream('chat.send', { ...address, content: 'hello', agent })
      .done()
      .catch((error: unknown) => [{ event: 'refused', data: { status: String(error) } }]);
    const last = frames.at(-1);
    // A message that is refused while the agent starts was not accepted, and is sent again.
    if (last?.event === 'done') ends.push((last.data as { status: string }).status);
    else await sleep(POLL_MS);
  }
  await client.close();
  return ends;
};
