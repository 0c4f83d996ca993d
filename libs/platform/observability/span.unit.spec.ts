import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { AppError } from '@antiphon/kernel';
import {
  AlwaysOffSampler,
  InMemorySpanExporter,
  ParentBasedSampler,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { ReadableSpan, Sampler } from '@opentelemetry/sdk-trace';
import {
  contextFrom,
  currentContext,
  runInTrace,
  runWithContext,
  traceHeadersOf,
} from './request-context.js';
import { namedTraceparent, openSpan, recordSpan, withSpan } from './span.js';
import { uuidIds } from './system-ports.js';
import { onlyExportable } from './telemetry-export.js';
import {
  SpanIds,
  newTraceparent,
  parseTraceparent,
  setActiveTracing,
  spanIdOf,
  timeOfUuid,
} from './trace-context.js';

let exporter: InMemorySpanExporter;
let provider: TracerProvider;

const turnOn = (sampler?: Sampler): void => {
  exporter = new InMemorySpanExporter();
  const ids = new SpanIds();
  provider = new TracerProvider({
    idGenerator: ids,
    spanProcessors: [new SimpleSpanProcessor({ exporter: onlyExportable(exporter) })],
    ...(sampler ? { sampler } : {}),
  });
  setActiveTracing({ tracer: provider.getTracer('spec'), ids });
};
const spans = (): ReadableSpan[] => exporter.getFinishedSpans();
const span = (name: string): ReadableSpan => {
  const found = spans().find((one) => one.name === name);
  if (!found) throw new Error(`no span ${name}`);
  return found;
};
const inContext = <T>(work: () => T, traceparent?: string): T =>
  runWithContext(contextFrom('agent', { correlationId: 'req-1', traceparent }), work);

describe('spans', () => {
  beforeEach(() => turnOn());
  afterEach(() => setActiveTracing(null));

  it('are nested, and the first starts the trace that the log lines name', async () => {
    const seen: (string | undefined)[] = [];
    await inContext(async () => {
      seen.push(currentContext()?.traceparent);
      await withSpan({ name: 'outer' }, () => withSpan({ name: 'inner' }, () => Promise.resolve()));
    });
    const traceId = parseTraceparent(seen[0])?.traceId;
    expect(span('outer').parentSpanContext).toBeUndefined();
    expect(span('outer').spanContext().traceId).toBe(traceId);
    expect(span('inner').parentSpanContext?.spanId).toBe(span('outer').spanContext().spanId);
  });

  it('are children of the span that the request came with', async () => {
    const parent = newTraceparent();
    await inContext(() => withSpan({ name: 'served' }, () => Promise.resolve()), parent);
    expect(span('served').parentSpanContext?.spanId).toBe(parseTraceparent(parent)?.spanId);
  });

  it('of concurrent work are siblings', async () => {
    await inContext(() =>
      withSpan({ name: 'both' }, () =>
        Promise.all(['a', 'b'].map((name) => withSpan({ name }, () => Promise.resolve(currentContext())))),
      ),
    );
    for (const name of ['a', 'b'])
      expect(span(name).parentSpanContext?.spanId).toBe(span('both').spanContext().spanId);
  });

  it('have allowed attributes only, and no error text', async () => {
    await expect(
      inContext(() =>
        withSpan({ name: 'fails', attributes: { 'rpc.method': 'ping' } }, (own) => {
          own.set({ prompt: 'CANARY', 'gen_ai.tool.call.arguments': 'CANARY' } as object);
          return Promise.reject(new AppError('rejected', 'TEST.REFUSED', 'CANARY in a message'));
        }),
      ),
    ).rejects.toThrow('CANARY');
    const { attributes, status, events, droppedAttributesCount } = span('fails');
    expect(attributes).toEqual({
      'rpc.method': 'ping',
      'error.type': 'TEST.REFUSED',
      'antiphon.request.id': 'req-1',
    });
    expect(status).toEqual({ code: 2 });
    expect(events).toEqual([]);
    expect(droppedAttributesCount).toBe(2);
  });

  it('lose the texts that a library puts into events, links and status', () => {
    const foreign = provider.getTracer('a library').startSpan('foreign');
    foreign.recordException(new Error('CANARY'));
    foreign.setStatus({ code: 2, message: 'CANARY' });
    foreign.addLink({ context: foreign.spanContext(), attributes: { text: 'CANARY' } });
    foreign.end();
    expect(JSON.stringify({ ...span('foreign'), resource: null })).not.toContain('CANARY');
  });

  it('are not made outside of a request or in a trace that is not sampled', async () => {
    await withSpan({ name: 'outside' }, () => Promise.resolve());
    const unsampled = newTraceparent().replace(/01$/, '00');
    await inContext(() => withSpan({ name: 'unsampled' }, () => Promise.resolve()), unsampled);
    expect(spans()).toEqual([]);
  });

  it('of a trace that the sampler drops pass the decision to the next service', async () => {
    turnOn(new ParentBasedSampler({ root: new AlwaysOffSampler() }));
    const inside = await inContext(() =>
      withSpan({ name: 'left out' }, () => Promise.resolve(currentContext()?.traceparent)),
    );
    expect(parseTraceparent(inside)?.sampled).toBe(false);
    expect(spans()).toEqual([]);
  });
});

describe('the span of work that outlives its process', () => {
  beforeEach(() => turnOn());
  afterEach(() => setActiveTracing(null));

  it('has children of any process before it is written', async () => {
    const uuid = uuidIds.next();
    const origin = newTraceparent();
    const place = namedTraceparent(origin, uuid);
    await inContext(() => withSpan({ name: 'child' }, () => Promise.resolve()), place);
    recordSpan({
      name: 'whole',
      uuid,
      traceparent: origin,
      startedAt: 1_800_000_001_000,
      endedAt: 1_800_000_003_500,
    });
    expect(span('whole').spanContext().spanId).toBe(spanIdOf(uuid));
    expect(span('child').parentSpanContext?.spanId).toBe(spanIdOf(uuid));
    expect(span('whole').parentSpanContext?.spanId).toBe(parseTraceparent(origin)?.spanId);
    expect(span('whole').startTime).toEqual([1_800_000_001, 0]);
    expect(span('whole').endTime).toEqual([1_800_000_003, 500_000_000]);
  });

  it('has the creation time of a UUIDv7 and of no other id', () => {
    const before = Date.now();
    expect(timeOfUuid(uuidIds.next())).toBeGreaterThanOrEqual(before);
    expect(timeOfUuid('0af76519-16cd-43dd-8448-eb211c80319c')).toBeNull();
    expect(timeOfUuid('nonsense')).toBeNull();
  });
});

describe('a trace through Temporal', () => {
  beforeEach(() => turnOn());
  afterEach(() => setActiveTracing(null));

  it('continues where its headers arrive', async () => {
    const headers = await inContext(() =>
      withSpan({ name: 'starts a run' }, () => Promise.resolve(traceHeadersOf('gateway'))),
    );
    const travelled = JSON.parse(JSON.stringify({ ...headers, workspace: 'default' })) as typeof headers;
    const context = await runInTrace('agent', travelled, () =>
      withSpan({ name: 'activity' }, () => Promise.resolve(currentContext())),
    );
    expect(context).toMatchObject({ correlationId: 'req-1', workspace: 'default', service: 'agent' });
    expect(span('activity').parentSpanContext?.spanId).toBe(span('starts a run').spanContext().spanId);
  });
});

describe('with tracing off', () => {
  it('no span is made and the context is unchanged', async () => {
    const context = contextFrom('agent');
    await runWithContext(context, () =>
      withSpan({ name: 'nothing' }, () => Promise.resolve(expect(currentContext()).toBe(context))),
    );
    expect(openSpan({ name: 'nothing' }, context).context).toBe(context);
  });
});
