import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { runInTrace, silentLogger, startTelemetry, withSpan } from '@antiphon/observability';
import type { Telemetry } from '@antiphon/observability';
import { createTestDatabase } from '@antiphon/testing';
import { startOtlpReceiver, treeProblems } from '@antiphon/testing/telemetry';
import type { OtlpReceiver } from '@antiphon/testing/telemetry';
import { createAgentWorld, newAddress, submitTo } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { asksFor, streams } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

let world: AgentWorld;
let receiver: OtlpReceiver;
let telemetry: Telemetry;
beforeAll(async () => {
  receiver = await startOtlpReceiver();
  const env = Object.assign(process.env, {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_METRICS_EXPORTER: 'none',
    OTEL_BSP_SCHEDULE_DELAY: '50',
  });
  const logger = silentLogger;
  telemetry = await startTelemetry({ service: 'agent', instanceId: 'spec', version: '0', env, logger });
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
});
afterAll(async () => {
  await world.close();
  await telemetry.stop();
  await receiver.close();
});

/** Starts a process that dies after the model's tool call, before the call is requested. */
const diesBeforeTheTool = (): { process: TestProcess; died: Promise<void> } => {
  let dead: () => void = () => undefined;
  const died = new Promise<void>((resolve) => (dead = resolve));
  const process: TestProcess = world.process({
    failpoint: async (name) => {
      if (name !== 'agent.tool.requested') return;
      process.kill();
      dead();
      await new Promise(() => undefined);
    },
  });
  return { process, died };
};

describe('a turn that two processes drove', () => {
  it('is one tree under one span, written by the process that ended it', async () => {
    // A tool with a capability does not run before its request is committed.
    world.responders.tools = [{ ...echoTool(true), grants: ['http:example.com'] }];
    world.model.reply = (request, sink, call) =>
      request.messages.at(-1)?.role === 'tool'
        ? streams('done')(request, sink, call)
        : Promise.resolve(asksFor({ name: 'echo', input: {} }));
    const { process: first, died } = diesBeforeTheTool();
    const submitted = await runInTrace('agent', { correlationId: 'req-1' }, () =>
      withSpan({ name: 'request', role: 'server' }, () => submitTo(first, { address: newAddress() })),
    );
    await died;
    world.process();
    await world.handleExit(first);
    await world.ended(submitted.sessionId);

    const turn = await receiver.waitFor('the span of the turn', (spans) =>
      spans.find(({ name }) => name === 'invoke_agent main'),
    );
    expect(turn.attributes).toMatchObject({
      'antiphon.turn.id': submitted.turnId,
      'antiphon.turn.status': 'completed',
      'antiphon.request.id': 'req-1',
    });
    const ours = await receiver.waitFor('all that the first process had begun', (spans) => {
      const trace = spans.filter(({ traceId }) => traceId === turn.traceId);
      return treeProblems(trace).length === 0 ? trace : undefined;
    });
    const below = ours.filter(({ parentSpanId }) => parentSpanId === turn.spanId).map(({ name }) => name);
    expect(below.filter((name) => name.startsWith('chat '))).toHaveLength(2);
    expect(below).toContain('execute_tool echo');
    expect(ours.filter(({ name }) => name.startsWith('invoke_agent'))).toHaveLength(1);
  });
});
