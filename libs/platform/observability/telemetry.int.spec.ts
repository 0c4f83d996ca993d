import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { startOtlpReceiver } from '@antiphon/testing/telemetry';
import type { OtlpReceiver } from '@antiphon/testing/telemetry';
import { closedPort } from '@antiphon/testing/providers';
import { createLogger, silentLogger } from './logger.js';
import { defineCounter, defineHistogram, observeGauges, renderMetrics } from './metrics.js';
import { contextFrom, runWithContext } from './request-context.js';
import { withSpan } from './span.js';
import { startTelemetry } from './telemetry.js';
import type { Telemetry } from './telemetry.js';
import { activeTracing } from './trace-context.js';

let receiver: OtlpReceiver;
let telemetry: Telemetry | null = null;
/** Starts telemetry with these variables in `process.env`, where the SDK reads them. */
const start = async (variables: Record<string, string>, logger = silentLogger): Promise<void> => {
  Object.assign(process.env, variables);
  telemetry = await startTelemetry({
    service: 'agent',
    instanceId: 'agent-1',
    version: '1.0.0',
    env: process.env,
    logger,
  });
};
const makeSpan = (name: string): Promise<void> =>
  runWithContext(contextFrom('agent'), () => withSpan({ name }, () => Promise.resolve()));

beforeEach(async () => {
  receiver = await startOtlpReceiver();
});
afterEach(async () => {
  await telemetry?.stop();
  telemetry = null;
  for (const name of Object.keys(process.env))
    if (name.startsWith('OTEL_')) Reflect.deleteProperty(process.env, name);
  await receiver.close();
});

describe('telemetry without an endpoint', () => {
  it.each([
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_SDK_DISABLED: 'true' },
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_TRACES_EXPORTER: 'none',
      OTEL_METRICS_EXPORTER: 'none',
    },
  ])('traces and exports nothing and opens no resource: %j', async (env) => {
    const before = process.getActiveResourcesInfo().toSorted();
    await start(env as Record<string, string>);
    await makeSpan('unseen');
    expect(activeTracing()).toBeNull();
    expect(process.getActiveResourcesInfo().toSorted()).toEqual(before);
  });
});

describe('telemetry with an endpoint', () => {
  it('exports the remaining spans before it stops, as protobuf by default', async () => {
    await start({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url });
    await makeSpan('in protobuf');
    await telemetry?.stop();
    expect([...receiver.contentTypes]).toEqual(['application/x-protobuf']);
    expect(receiver.bodies.join('')).toContain('in protobuf');
    expect(activeTracing()).toBeNull();
  });

  it('reads a name, attributes and a sampler from the environment', async () => {
    await start({
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/v1/traces`,
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
      OTEL_SERVICE_NAME: 'my-agents',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=spec',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '1',
    });
    await makeSpan('named');
    await telemetry?.stop();
    expect(receiver.spans.map(({ service, name }) => ({ service, name }))).toEqual([
      { service: 'my-agents', name: 'named' },
    ]);
    expect(receiver.bodies.join('')).toContain('deployment.environment.name');
    expect(receiver.metrics.size).toBe(0);
  });

  it('logs that a collector is unreachable and stops all the same', async () => {
    const lines: string[] = [];
    const logger = createLogger({ service: 'agent', sink: { write: (line) => lines.push(line) } });
    const endpoint = await closedPort();
    await start({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TIMEOUT: '500' }, logger);
    await makeSpan('lost');
    await telemetry?.stop();
    expect(lines.join('')).toContain('telemetry not exported');
  });

  it.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'not a url'],
    ['OTEL_TRACES_SAMPLER', 'sometimes'],
    ['OTEL_TRACES_SAMPLER_ARG', '2'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
  ])('rejects a wrong %s by name, without its value', async (name, value) => {
    await expect(start({ [name]: value })).rejects.toMatchObject({
      code: 'SERVICE.BAD_ENVIRONMENT',
      message: expect.stringContaining(name) as unknown as string,
    });
    Reflect.deleteProperty(process.env, name);
    await start({});
  });
});

describe('metrics', () => {
  it('are rendered for Prometheus: counters, histograms, and gauges read at that moment', async () => {
    const counter = defineCounter('spec_things', 'Things');
    const seconds = defineHistogram('spec_seconds', 'Time', { buckets: [0.1, 1] });
    await start({});
    counter.add(2, { kind: 'a' });
    seconds.record(0.5);
    let asked = 0;
    const stop = observeGauges({ spec_depth: 'Depth' }, (report) =>
      report('spec_depth', ++asked, { of: 'x' }),
    );
    const { text, errors } = await renderMetrics();
    expect(errors).toEqual([]);
    expect(text).toContain('# HELP spec_things_total Things');
    expect(text).toContain('spec_things_total{kind="a"} 2\n');
    expect(text).toContain('spec_seconds_bucket{le="1"} 1\n');
    expect(text).toContain('spec_depth{of="x"} 1\n');
    stop();
    expect((await renderMetrics()).text).not.toContain('spec_depth{of="x"} 2');
  });

  it('omit a gauge that fails and report its error', async () => {
    await start({});
    const stop = observeGauges({ spec_broken: 'Broken' }, () => Promise.reject(new Error('away')));
    defineCounter('spec_whole', 'Whole').add(1);
    const { text, errors } = await renderMetrics();
    expect(errors).toHaveLength(1);
    expect(text).toContain('spec_whole_total 1');
    stop();
  });
});
