import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { SPAN_ATTRIBUTES } from '@antiphon/observability';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import {
  startOtlpReceiver,
  treeProblems,
  type OtlpReceiver,
  type ReceivedSpan,
} from '@antiphon/testing/telemetry';
import { CANARY_KEY, eventually, readEvents, twoVendors, type LoggedEvent } from './stack-under-test.js';

jest.setTimeout(180_000);

const PROMPT_CANARY = 'the zebra of prompts';
const ANSWER_CANARY = 'the quagga of answers';
const TRACE_ID = randomBytes(16).toString('hex');
const CLIENT_SPAN = randomBytes(8).toString('hex');

let receiver: OtlpReceiver;
let mock: MockModel;
let stack: TestStack;
let client: SocketClient;
let trace: readonly ReceivedSpan[];
let events: readonly LoggedEvent[];
let sessionId: string;
let turnId: string;

const SERVICES = ['gateway', 'agent', 'memory', 'metering', 'sandbox'] as const;

const named = (name: string, service?: string): readonly ReceivedSpan[] =>
  trace.filter((span) => span.name === name && (!service || span.service === `antiphon-${service}`));
const parentOf = ({ parentSpanId }: ReceivedSpan): ReceivedSpan | undefined =>
  trace.find(({ spanId }) => spanId === parentSpanId);
/** The names of the spans above one, nearest first. */
const above = (span: ReceivedSpan): string[] => {
  const parent = parentOf(span);
  return parent ? [parent.name, ...above(parent)] : [];
};

/** Everything that the turn sets going has come: both settlements are told twice, by request and by event. */
const isWhole = (spans: readonly ReceivedSpan[]): readonly ReceivedSpan[] | undefined => {
  const ours = spans.filter(({ traceId }) => traceId === TRACE_ID);
  const count = (name: string): number => ours.filter((span) => span.name === name).length;
  const whole =
    count('chat.send') === 1 &&
    count('process metering-settle-calls') === 2 &&
    count('ledger settle') === 4 &&
    ours.some(({ name }) => name.startsWith('invoke_agent')) &&
    treeProblems(ours, CLIENT_SPAN).length === 0;
  return whole ? ours : undefined;
};

const runTurn = async (): Promise<void> => {
  const stream = client.stream('chat.send', {
    channel: 'test',
    account: 'e2e',
    peer: 'traced',
    agent: 'claude',
    content: `${PROMPT_CANARY}: what is 19 + 23?`,
  });
  const frames = await stream.done();
  ({ sessionId, turnId } = frames[0]?.data as { sessionId: string; turnId: string });
  expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
};

beforeAll(async () => {
  receiver = await startOtlpReceiver();
  mock = await startMockModel(({ toolResults }) =>
    toolResults.length > 0
      ? { text: [ANSWER_CANARY, `: ${toolResults[0]}`] }
      : { tools: [{ id: 'call_1', name: 'calculator', input: { expression: '19 + 23' } }] },
  );
  stack = await startStack({
    config: twoVendors(mock.url),
    env: {
      E2E_PROVIDER_KEY: CANARY_KEY,
      ANTIPHON_LOG_LEVEL: 'debug',
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '100',
      OTEL_METRIC_EXPORT_INTERVAL: '500',
    },
  });
  client = await connectClient(stack.wsUrl, { traceparent: `00-${TRACE_ID}-${CLIENT_SPAN}-01` });
  await runTurn();
  trace = await receiver.until('the whole trace of the turn', isWhole);
  events = await readEvents(stack);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
  await receiver?.close();
});

describe('the trace of one turn', () => {
  it('is one tree under the span of the client', () => {
    expect(treeProblems(trace, CLIENT_SPAN)).toEqual([]);
    expect(new Set(trace.map(({ service }) => service))).toEqual(
      new Set(SERVICES.map((service) => `antiphon-${service}`)),
    );
  });

  it.each([
    ['chat.send', 'gateway', 1],
    ['cmd.agent.turn.submit', 'gateway', 1],
    ['cmd.agent.turn.submit', 'agent', 1],
    ['invoke_agent claude', 'agent', 1],
    ['cmd.memory.context.assemble', 'agent', 1],
    ['cmd.memory.context.assemble', 'memory', 1],
    ['cmd.metering.budget.reserve', 'agent', 2],
    ['cmd.metering.budget.reserve', 'metering', 2],
    ['ledger reserve', 'metering', 2],
    ['chat claude-sonnet-4', 'agent', 2],
    ['execute_tool calculator', 'agent', 1],
    ['cmd.sandbox.tool.call', 'agent', 1],
    ['cmd.sandbox.tool.call', 'sandbox', 1],
    ['run in cell', 'sandbox', 1],
    ['cmd.metering.budget.settle', 'metering', 2],
    ['process metering-settle-calls', 'metering', 2],
  ])('has %s in %s, %i times', (name, service, times) => {
    expect(named(name, service)).toHaveLength(times);
  });

  it('hangs each hop under the one that caused it', () => {
    expect(above(named('run in cell')[0]!).slice(0, 4)).toEqual([
      'cmd.sandbox.tool.call',
      'cmd.sandbox.tool.call',
      'execute_tool calculator',
      'invoke_agent claude',
    ]);
    expect(named('chat claude-sonnet-4').map((span) => above(span))).toEqual([
      ['invoke_agent claude', 'cmd.agent.turn.submit', 'cmd.agent.turn.submit', 'chat.send'],
      ['invoke_agent claude', 'cmd.agent.turn.submit', 'cmd.agent.turn.submit', 'chat.send'],
    ]);
    expect(named('append').map((span) => above(span)[0])).toEqual(
      expect.arrayContaining(['cmd.agent.turn.submit', 'invoke_agent claude']),
    );
  });

  it('names what GenAI conventions ask for', () => {
    const call = named('chat claude-sonnet-4')[0]!;
    expect(call.kind).toBe(3);
    expect(call.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'anthropic',
      'gen_ai.request.model': 'claude-sonnet-4',
      'gen_ai.response.model': 'claude-sonnet-4',
      'gen_ai.response.finish_reasons': ['tool_calls'],
      'gen_ai.conversation.id': sessionId,
      'antiphon.turn.id': turnId,
    });
    expect(named('invoke_agent claude')[0]?.attributes).toMatchObject({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.id': 'claude',
      'gen_ai.conversation.id': sessionId,
      'antiphon.turn.status': 'completed',
    });
    expect(named('execute_tool calculator')[0]?.attributes).toMatchObject({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'calculator',
    });
  });

  it('counts the tokens that the ledger charged', () => {
    const sum = (values: readonly unknown[]): number =>
      values.reduce<number>((a, b) => a + Number(b ?? 0), 0);
    const settled = events.filter(({ type }) => type === 'BudgetSettled').map(({ data }) => data);
    expect(settled).toHaveLength(2);
    for (const direction of ['input', 'output'] as const) {
      const traced = sum(trace.map(({ attributes }) => attributes[`gen_ai.usage.${direction}_tokens`]));
      expect(traced).toBeGreaterThan(0);
      expect(traced).toBe(sum(settled.map((data) => data[`${direction}Tokens`])));
    }
  });

  it('covers the turn from its request to its end', () => {
    const turn = named('invoke_agent claude')[0]!;
    for (const call of named('chat claude-sonnet-4')) {
      expect(call.startNs).toBeGreaterThanOrEqual(turn.startNs);
      // The turn's clock counts whole milliseconds.
      expect(call.endNs).toBeLessThanOrEqual(turn.endNs + 1_000_000n);
    }
  });
});

describe('what leaves the process', () => {
  it('has no prompt, no answer, no key, and no attribute that is not allowed', () => {
    const sent = receiver.bodies.join('\n');
    for (const secret of [PROMPT_CANARY, ANSWER_CANARY, CANARY_KEY, '19 + 23'])
      expect(sent).not.toContain(secret);
    const names = new Set(receiver.spans.flatMap(({ attributes }) => Object.keys(attributes)));
    expect([...names].filter((name) => !(SPAN_ATTRIBUTES as readonly string[]).includes(name))).toEqual([]);
    expect(receiver.spans.filter(({ events: own, status }) => own.length > 0 || status.message)).toEqual([]);
  });

  it('has metrics too', () =>
    eventually('metrics over OTLP', () =>
      Promise.resolve(receiver.metrics.has('antiphon_turn_duration_seconds') || undefined),
    ));
});

describe('the log lines of one turn', () => {
  const linesOf = (): readonly Record<string, unknown>[] =>
    SERVICES.flatMap((service) =>
      stack
        .readLog(`${service}-1`)
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter((line) => line['traceId'] === TRACE_ID),
    );

  it('each carry the request, the session, the turn and the trace', () => {
    const lines = linesOf();
    expect(new Set(lines.map(({ service }) => service))).toEqual(new Set(['metering', 'sandbox']));
    const requestId = named('chat.send')[0]?.attributes['antiphon.request.id'];
    for (const line of lines)
      expect(line).toMatchObject({ correlationId: requestId, sessionId, turnId, traceId: TRACE_ID });
  });
});

describe('/metrics', () => {
  const read = async (path = '/metrics'): Promise<string> => {
    const answer = await fetch(`${stack.gatewayUrl}${path}`);
    expect(answer.headers.get('content-type')).toContain('text/plain');
    return answer.text();
  };

  it('of the gateway has the time to the first text', async () => {
    expect(await read()).toMatch(/antiphon_turn_first_text_seconds_count 1\n/);
  });

  it('begins a trace of its own for a client that has none', async () => {
    const other = await connectClient(stack.wsUrl);
    await other
      .stream('chat.send', { channel: 'test', account: 'e2e', peer: randomUUID(), content: 'hi' })
      .done();
    await other.close();
    const root = await receiver.until('a root span', (spans) =>
      spans.find(({ name, parentSpanId }) => name === 'chat.send' && parentSpanId === ''),
    );
    expect(root.traceId).not.toBe(TRACE_ID);
  });
});
