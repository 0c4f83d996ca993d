import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { RunView } from '@antiphon/contracts/agent';
import { connectClient, textOf, type SocketClient, type StreamedFrame } from '@antiphon/testing/client';
import {
  startHttpProvider,
  startMockModel,
  type HttpProvider,
  type MockModel,
  type MockScript,
} from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import {
  readEvents,
  startQuickStack,
  twoVendorConfig,
  waitForValue,
  type LoggedEvent,
} from './stack-under-test.js';

jest.setTimeout(180_000);

const TOKEN = 'correct-horse-battery-staple-0123456789';
const BEARER = { authorization: `Bearer ${TOKEN}` };
const ROLES = ['planner', 'implementer', 'reviewer'] as const;
const VENDORS = { planner: 'anthropic', implementer: 'openai', reviewer: 'anthropic' } as const;

const roleConfig = ROLES.map(
  (role) => `
[[agents]]
id = "${role}"
role = "${role}"
provider = "${VENDORS[role]}"
model = "m"
system_prompt = "You are the ${role}."
tools = ["echo"]
`,
).join('');

const bindings = `
[[bindings]]
guild = "engineers"
agent = "gpt"

[[bindings]]
team = "reviews"
agent = "reviewer"
`;

/**
 * Ways in which a provider fails, with the tries that it gets. Each has a provider, and so a
 * circuit, of its own.
 */
const FAILURES = [
  { name: 'refuses', outcome: 'answers 401', tries: 1 },
  { name: 'errs', outcome: 'answers 500', tries: 3 },
  { name: 'resets', outcome: 'resets the connection', tries: 3 },
] as const;

const fallbackConfig = (failingUrl: string): string =>
  FAILURES.map(
    ({ name }) => `
[[providers]]
name = "${name}"
kind = "anthropic"
base_url = "${failingUrl}/${name}"
api_key_env = "E2E_PROVIDER_KEY"

[[agents]]
id = "${name}"
provider = "${name}"
model = "claude-sonnet-4"

[agents.fallback]
provider = "openai"
model = "gpt-4o"
`,
  ).join('');

/** Replies to a sum through the calculator, and to any other message at once. */
const answerSums: MockScript = ({ user, toolResults }) => {
  if (toolResults.length > 0) return { text: ['The sum ', 'is ', `${toolResults[0]}.`] };
  if (user.includes('sum'))
    return {
      text: ['Let me see.'],
      tools: [{ id: 'call_1', name: 'calculator', input: { expression: '19 + 23' } }],
    };
  return { text: ['You said: ', user] };
};

let script: MockScript = answerSums;
let mock: MockModel;
let failing: HttpProvider;
let stack: TestStack;
let client: SocketClient;

beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  failing = await startHttpProvider(({ path }, response) => {
    if (path.startsWith('/resets')) return void response.destroy();
    response.writeHead(path.startsWith('/refuses') ? 401 : 500, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ type: 'error', error: { type: 'api_error', message: 'out of order' } }));
  });
  const vendors = twoVendorConfig(mock.url, `token = "${TOKEN}"`);
  stack = await startQuickStack(vendors + fallbackConfig(failing.url) + roleConfig + bindings);
  client = await connectClient(stack.wsUrl);
  client.sendRaw(JSON.stringify({ method: 'connect', params: { token: TOKEN } }));
  await client.waitFor('session.ack', ({ type }) => type === 'session.ack');
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await Promise.all([mock?.close(), failing?.close()]);
});

const send = async (peer: string, content: string, more: Record<string, string> = {}) => {
  const address = { channel: 'test', account: 'agents', peer };
  return client.stream('chat.send', { ...address, content, ...more }).done();
};
const acceptedOf = ([accepted]: readonly StreamedFrame[]) =>
  accepted?.data as { sessionId: string; turnId: string; agent: string };
const sessionEvents = (frames: readonly StreamedFrame[]) =>
  readEvents(stack, { stream: `session-${acceptedOf(frames).sessionId}` }, BEARER);

// @shows A1
describe('a client that authenticates with a token', () => {
  it.each(['claude', 'gpt'])('gets the answer of %s streamed in pieces, with a tool call', async (agent) => {
    const frames = await send(`stream-${agent}`, 'the sum, please', { agent });
    const kinds = frames.map(({ event }) => event);
    expect(kinds.filter((kind, i) => kind !== 'text' || kinds[i - 1] !== 'text')).toEqual([
      ...['accepted', 'text', 'tool_use', 'usage', 'tool_result', 'text', 'usage', 'done'],
    ]);
    expect(kinds.filter((kind) => kind === 'text').length).toBeGreaterThanOrEqual(2);
    expect(textOf(frames)).toBe('Let me see.The sum is 42.');
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
    expect(mock.calls.at(-1)).toMatchObject({
      format: agent === 'claude' ? 'anthropic' : 'openai',
      streaming: true,
    });
  });
});

describe('the bindings of the configuration', () => {
  it.each([
    ['a guild', { guild: 'engineers' }, 'gpt'],
    ['a team', { team: 'reviews' }, 'reviewer'],
    ['a guild, which ranks before a team,', { guild: 'engineers', team: 'reviews' }, 'gpt'],
    ['an unknown guild and team', { guild: 'others', team: 'others' }, 'claude'],
  ])('route %s of a message to an agent', async (name, routing, agent) => {
    const frames = await send(`routed by ${name}`, 'hello', routing as Record<string, string>);
    expect(acceptedOf(frames).agent).toBe(agent);
    const [started] = await sessionEvents(frames);
    expect(started).toMatchObject({ type: 'SessionStarted', data: { agentId: agent } });
  });
});

// @shows A10
describe('messages of both vendors', () => {
  /**
   * Removes ids, times and the names of model and agent: the rest is the normalized conversation.
   */
  const normalized = (events: readonly LoggedEvent[]) =>
    events
      .filter(({ type }) => ['TurnRequested', 'ModelCallCompleted', 'ToolCallCompleted'].includes(type))
      .map(({ type, data }) => {
        const { content, text, thought, isError } = data;
        const calls = (data['toolCalls'] as { name: string; input: unknown }[] | undefined)?.map((call) => ({
          name: call.name,
          input: call.input,
        }));
        return { type, content, text, thought, isError, calls };
      });

  it('are stored in one normalized form: text, tool use and tool result', async () => {
    const logs = await Promise.all(
      ['claude', 'gpt'].map(async (agent) =>
        sessionEvents(await send(`same-${agent}`, 'the sum, please', { agent })),
      ),
    );
    const [claude, gpt] = logs.map(normalized);
    expect(claude).toEqual(gpt);
    expect(claude).toMatchObject([
      { type: 'TurnRequested', content: 'the sum, please' },
      { text: 'Let me see.', calls: [{ name: 'calculator', input: { expression: '19 + 23' } }] },
      { type: 'ToolCallCompleted', content: '42', isError: false },
      { text: 'The sum is 42.', calls: [] },
    ]);
  });

  it('return to each vendor in its own format with the next turn', async () => {
    await send('same-claude', 'and now?', { agent: 'claude' });
    expect(mock.calls.at(-1)?.seen.body).toMatchObject({
      messages: [
        { role: 'user', content: 'the sum, please' },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'Let me see.' },
            { type: 'tool_use', name: 'calculator' },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', content: '42' }] },
        { role: 'assistant', content: [{ type: 'text', text: 'The sum is 42.' }] },
        { role: 'user', content: [{ type: 'text', text: 'and now?' }] },
      ],
    });
    await send('same-gpt', 'and now?', { agent: 'gpt' });
    const { messages } = mock.calls.at(-1)?.seen.body as { messages: { role: string }[] };
    expect(messages.filter(({ role }) => role !== 'system')).toMatchObject([
      { role: 'user', content: 'the sum, please' },
      { role: 'assistant', content: 'Let me see.', tool_calls: [{ function: { name: 'calculator' } }] },
      { role: 'tool', content: '42' },
      { role: 'assistant', content: 'The sum is 42.' },
      { role: 'user', content: 'and now?' },
    ]);
  });
});

// @shows H14
describe('an agent with a fallback, whose provider fails over HTTP', () => {
  it.each(FAILURES)('is answered by the fallback when the provider $outcome', async ({ name, tries }) => {
    const answered = mock.calls.length;
    const frames = await send('fallback', 'is anyone there?', { agent: name });
    expect(textOf(frames)).toBe('You said: is anyone there?');
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
    expect(failing.requests.filter(({ path }) => path.startsWith(`/${name}`))).toHaveLength(tries);
    expect(mock.calls.slice(answered)).toMatchObject([{ format: 'openai', model: 'gpt-4o' }]);
    const events = await sessionEvents(frames);
    const started = events.filter(({ type }) => type === 'ModelCallStarted');
    expect(started.map(({ data }) => data['provider'])).toEqual([
      ...Array<string>(tries).fill(name),
      'openai',
    ]);
  });
});

describe('open tasks', () => {
  it('of a project are cancelled page by page, and those of another project stay', async () => {
    const headers = { ...BEARER, 'content-type': 'application/json' };
    const post = async (path: string, body: object) => {
      const options = { method: 'POST', headers, body: JSON.stringify(body) };
      const response = await fetch(`${stack.gatewayUrl}/api/v1${path}`, options);
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
      return (await response.json()) as { id: string; cancelled: string[]; nextCursor: string | null };
    };
    const create = async (project: string) =>
      (await post('/tasks', { prompt: 'wait', capabilities: ['nobody-has-it'], project })).id;
    const other = await create('other');
    const ids: string[] = [];
    for (let n = 0; n < 105; n++) ids.push(await create('website'));
    // The list is a projection of the log.
    await waitForValue('the tasks', async () => {
      const list = await fetch(`${stack.gatewayUrl}/api/v1/tasks?project=website&limit=500`, { headers });
      return ((await list.json()) as { tasks: object[] }).tasks.length === ids.length || undefined;
    });
    const cancelled: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page = await post('/tasks/cancel', { project: 'website', reason: 'over', cursor });
      expect(page.cancelled.length).toBeLessThanOrEqual(100);
      cancelled.push(...page.cancelled);
      cursor = page.nextCursor;
    }
    expect(cancelled.toSorted()).toEqual(ids.toSorted());
    const stateOf = async (id: string) =>
      (
        (await (await fetch(`${stack.gatewayUrl}/api/v1/tasks/${id}`, { headers })).json()) as {
          state: string;
        }
      ).state;
    expect(new Set(await Promise.all(ids.map(stateOf)))).toEqual(new Set(['cancelled']));
    expect(await stateOf(other)).toBe('queued');
  });
});

// @shows M14
describe('a run of three agents in three roles', () => {
  const WORKFLOW = {
    name: 'roles',
    inputs: { goal: {} },
    nodes: [
      { id: 'plan', agent: 'planner', prompt: 'Plan {{inputs.goal}}' },
      { id: 'build', agent: 'implementer', needs: ['plan'], prompt: 'Implement {{nodes.plan.output}}' },
      { id: 'review', agent: 'reviewer', needs: ['build'], prompt: 'Review {{nodes.build.output}}' },
    ],
  };
  const request = async <T>(path: string, body?: unknown): Promise<T> => {
    const headers = { ...BEARER, 'content-type': 'application/json' };
    const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(`${stack.gatewayUrl}/api/v1${path}`, { headers, ...post });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };
  /** Finds the role in the system prompt, wherever the vendor's format has it. */
  const roleOf = (body: unknown): string =>
    /You are the (\w+)\./.exec(JSON.stringify(body))?.[1] ?? 'no role';

  it('has each make one tool call, and passes its artifact on to the next', async () => {
    script = ({ seen, user, toolResults }) => {
      const role = roleOf(seen.body);
      return toolResults.length > 0
        ? { text: [`${role}'s artifact: ${toolResults[0]}`] }
        : { tools: [{ id: `call_${role}`, name: 'echo', input: { text: `<${user}>` } }] };
    };
    const { id } = await request<RunView>('/runs', { workflow: WORKFLOW, inputs: { goal: 'a parser' } });
    const run = await waitForValue('the end of the run', async () => {
      const view = await request<RunView>(`/runs/${id}`);
      return view.status === 'running' ? undefined : view;
    });
    script = answerSums;
    expect(run.status).toBe('completed');
    const outputs = run.tasks.map(({ output }) => output ?? '');
    expect(outputs[0]).toMatch(/^planner's artifact: .*<Plan a parser>/);
    expect(outputs[1]).toMatch(/^implementer's artifact: .*Implement planner's artifact: .*Plan a parser/);
    expect(outputs[2]).toMatch(/^reviewer's artifact: .*Review implementer's artifact: .*planner's artifact/);
    for (const [index, { sessionId }] of run.tasks.entries()) {
      const events = await readEvents(stack, { stream: `session-${sessionId}` }, BEARER);
      expect(events[0]?.data).toMatchObject({ agentId: ROLES[index] });
      const calls = events.filter(({ type }) => type.startsWith('ToolCall')).map(({ type }) => type);
      expect(calls).toEqual(['ToolCallRequested', 'ToolCallCompleted']);
    }
  });
});
