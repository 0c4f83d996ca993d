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
import { linesOfRequests, markLogs, type LogLine } from './log-lines.js';
import {
  CANARY_KEY,
  waitForValue,
  readEvents,
  twoVendorConfig,
  type LoggedEvent,
} from './stack-under-test.js';

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
/** All lines that were written while the turn ran, but those of the processes themselves. */
let lines: readonly LogLine[];
let sessionId: string;
let turnId: string;

const SERVICES = ['gateway', 'agent', 'memory', 'metering', 'sandbox'] as const;

const named = (name: string, service?: string): readonly ReceivedSpan[] =>
  trace.filter((span) => span.name === name && (!service || span.service === `antiphon-${service}`));
const parentOf = ({ parentSpanId }: ReceivedSpan): ReceivedSpan | undefined =>
  trace.find(({ spanId }) => spanId === parentSpanId);
/** Returns the names of a span's ancestors, nearest first. */
const above = (span: ReceivedSpan): string[] => {
  const parent = parentOf(span);
  return parent ? [parent.name, ...above(parent)] : [];
};

/**
 * Returns the spans of the turn once all have arrived. The commits of both answers settle them, so
 * metering hears of no settlement.
 */
const findWholeTrace = (spans: readonly ReceivedSpan[]): readonly ReceivedSpan[] | undefined => {
  const ours = spans.filter(({ traceId }) => traceId === TRACE_ID);
  const count = (name: string): number => ours.filter((span) => span.name === name).length;
  const whole =
    count('chat.send') === 1 &&
    count('chat claude-sonnet-4') === 2 &&
    count('ledger reserve') === 1 &&
    count('run in cell') === 1 &&
    // Of the agent, which asks, and of the service that answers.
    count('cmd.metering.budget.reserve') === 2 &&
    count('cmd.memory.context.assemble') === 2 &&
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
    config: twoVendorConfig(mock.url),
    shareDatabase: true,
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
  const readLines = markLogs(stack);
  await runTurn();
  trace = await receiver.waitFor('the whole trace of the turn', findWholeTrace);
  lines = linesOfRequests(readLines());
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
    ['cmd.metering.budget.reserve', 'agent', 1],
    ['cmd.metering.budget.reserve', 'metering', 1],
    ['ledger reserve', 'metering', 1],
    ['chat claude-sonnet-4', 'agent', 2],
    ['execute_tool calculator', 'agent', 1],
    ['cmd.sandbox.tool.call', 'agent', 1],
    ['cmd.sandbox.tool.call', 'sandbox', 1],
    ['run in cell', 'sandbox', 1],
    ['cmd.metering.budget.settle', 'metering', 0],
    ['process metering-settle-calls', 'metering', 0],
  ])('has %s in %s, %i times', (name, service, times) => {
    expect(named(name, service)).toHaveLength(times);
  });

  it('places each hop under the one that caused it', () => {
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

  it('has the attributes of the GenAI conventions', () => {
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
      // Turns are timed in whole milliseconds.
      expect(call.endNs).toBeLessThanOrEqual(turn.endNs + 1_000_000n);
    }
  });
});

describe('exported telemetry', () => {
  it('contains no prompt, no reply, no key, and only allowed attributes', () => {
    const sent = receiver.bodies.join('\n');
    for (const secret of [PROMPT_CANARY, ANSWER_CANARY, CANARY_KEY, '19 + 23'])
      expect(sent).not.toContain(secret);
    const names = new Set(receiver.spans.flatMap(({ attributes }) => Object.keys(attributes)));
    expect([...names].filter((name) => !(SPAN_ATTRIBUTES as readonly string[]).includes(name))).toEqual([]);
    expect(receiver.spans.filter(({ events: own, status }) => own.length > 0 || status.message)).toEqual([]);
  });

  it('contains metrics', () =>
    waitForValue('metrics over OTLP', () =>
      Promise.resolve(receiver.metrics.has('antiphon_turn_duration_seconds') || undefined),
    ));
});

describe('the log lines of one turn', () => {
  it('contain the ids of request, session, turn and trace', () => {
    const requestId = String(named('chat.send')[0]?.attributes['antiphon.request.id']);
    expect(new Set(lines.map(({ service }) => service))).toEqual(new Set(['gateway', 'agent', 'sandbox']));
    for (const line of lines)
      expect(line).toMatchObject({
        correlationId: requestId,
        workspace: 'default',
        sessionId,
        turnId,
        traceId: TRACE_ID,
      });
  });
});

describe('/metrics', () => {
  const read = async (service: (typeof SERVICES)[number]): Promise<string> => {
    const port = stack.stackJson().services[service]?.[0]?.port;
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    return answer.text();
  };

  it.each([
    ['gateway', /^antiphon_turn_first_text_seconds_count 1$/m],
    ['agent', /^antiphon_turn_duration_seconds_count\{status="completed"\} 1$/m],
    ['gateway', /^antiphon_turn_stage_seconds_count\{stage="done_sent"\} 1$/m],
    ['agent', /^antiphon_turn_stage_seconds_count\{stage="turn_committed"\} 1$/m],
    ['agent', /^antiphon_turn_stage_seconds_count\{stage="answer_committed"\} 2$/m],
    ['agent', /^antiphon_turns_open 0$/m],
    ['agent', /^antiphon_turns_waiting 0$/m],
    ['agent', /^antiphon_appends_waiting 0$/m],
    ['agent', /^antiphon_projection_lag_events\{projection="agent-sessions"\} \d+$/m],
    ['agent', /^antiphon_tool_duration_seconds_count\{tool="calculator",outcome="completed"\} 1$/m],
    ['agent', /^gen_ai_client_operation_duration_count\{.*gen_ai_provider_name="anthropic".*\} 2$/m],
    ['agent', /^antiphon_model_tokens_total\{.*gen_ai_token_type="output".*\} [1-9]\d*$/m],
    ['agent', /^antiphon_dependency_up\{dependency="nats"\} 1$/m],
    ['memory', /^antiphon_projection_lag_events\{projection="[a-z-]+"\} \d+$/m],
    ['memory', /^antiphon_relay_leading 1$/m],
    ['memory', /^antiphon_relay_lag_events \d+$/m],
    ['metering', /^antiphon_budget_tokens\{workspace="default",scope="day",state="settled"\} [1-9]\d*$/m],
    ['metering', /^antiphon_budget_tokens\{workspace="default",scope="month",state="reserved"\} 0$/m],
    ['sandbox', /^antiphon_dependency_up\{dependency="postgresql"\} 1$/m],
    ['sandbox', /^antiphon_database_connections\{state="open"\} \d+$/m],
  ] as const)('of %s has %s', async (service, line) => {
    expect(await read(service)).toMatch(line);
  });

  it('counts errors by place, kind and code', async () => {
    client.stream('chat.send', { unknown: 1 });
    await client.waitFor('the refusal', ({ error }) => error?.code === -32602);
    expect(await read('gateway')).toContain(
      'antiphon_errors_total{at="frame",kind="invalid",code="GATEWAY.INVALID_PARAMS"} 1',
    );
  });

  it('has no id in a label', async () => {
    const all = (await Promise.all(SERVICES.map(read))).join('\n');
    const series = all
      .split('\n')
      .filter((line) => line !== '' && !/^(#|target_info)/.test(line))
      .map((line) => line.replace(/ [^ ]+$/, ''));
    expect(series.length).toBeGreaterThan(50);
    expect(series.filter((line) => /[0-9a-f]{8}-[0-9a-f]{4}|[0-9a-f]{16}/.test(line))).toEqual([]);
  });
});

describe('a client without a trace', () => {
  const message = { channel: 'test', account: 'e2e', agent: 'claude', content: 'hi' };

  it('gets a trace whose root is its request', async () => {
    const other = await connectClient(stack.wsUrl);
    await other.stream('chat.send', { ...message, peer: randomUUID() }).done();
    await other.close();
    const root = await receiver.waitFor('a root span', (spans) =>
      spans.find(({ name, parentSpanId }) => name === 'chat.send' && parentSpanId === ''),
    );
    expect(root.traceId).not.toBe(TRACE_ID);
  });

  it('may pass one with a single request', async () => {
    const traceId = randomBytes(16).toString('hex');
    const other = await connectClient(stack.wsUrl);
    const traceparent = `00-${traceId}-${CLIENT_SPAN}-01`;
    other.sendRaw(JSON.stringify({ id: 7, method: 'ping', traceparent }));
    await other.waitFor('pong', ({ id }) => id === 7);
    await other.close();
    await receiver.waitFor('the span of the ping', (spans) =>
      spans.find((span) => span.traceId === traceId && span.name === 'ping'),
    );
  });
});

describe('the trace of a run', () => {
  it('is one tree of the request and the turn of each node, through Temporal', async () => {
    const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
    const nodes = [
      { id: 'first', agent: 'claude', prompt: 'begin' },
      { id: 'second', agent: 'gpt', needs: ['first'], prompt: 'continue from {{nodes.first.output}}' },
    ];
    const answer = await fetch(`${stack.gatewayUrl}/api/v1/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent: `00-${traceId}-${spanId}-01` },
      body: JSON.stringify({ workflow: { name: 'traced', nodes } }),
    });
    expect(answer.status).toBe(202);
    const whole = await receiver.waitFor('the whole trace of the run', (spans) => {
      const ours = spans.filter((span) => span.traceId === traceId);
      const turns = ours.filter(({ name }) => name.startsWith('invoke_agent'));
      return turns.length === 2 && treeProblems(ours, spanId).length === 0 ? ours : undefined;
    });
    expect(whole.filter(({ name }) => name.startsWith('chat ')).map(({ name }) => name)).toEqual(
      expect.arrayContaining(['chat claude-sonnet-4', 'chat gpt-4o']),
    );
  });
});
