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
import { setActiveTracing } from './active-tracing.js';
import { contextFrom, currentContext, runWithContext } from './request-context.js';
import { onlyExportable } from './span-export.js';
import { createSpanIds, spanIdOf, timeOfUuid } from './span-ids.js';
import { namedTraceparent, openSpan, recordSpan, withSpan } from './span.js';
import { uuidIds } from './system-ports.js';
import { runInTrace, traceHeadersOf } from './trace-headers.js';
import { newTraceparent, parseTraceparent } from './trace-context.js';

let exporter: InMemorySpanExporter;
let provider: TracerProvider;

const turnOn = (sampler?: Sampler): void => {
  exporter = new InMemorySpanExporter();
  const ids = createSpanIds();
  provider = new TracerProvider({
    idGenerator: ids,
    spanProcessors: [onlyExportable(new SimpleSpanProcessor({ exporter }))],
    ...(sampler ? { sampler } : {}),
  });
  setActiveTracing({ tracer: provider.getTracer('spec'), ids });
};
const spans = (): ReadableSpan[] => exporter.getFinishedSpans();
const span = (name: string): ReadableSpan => {
  const found = spans().find((one) => one.name === name);
  if (!found) throw new Error(`there is no span ${name}`);
  return found;
};
const inContext = <T>(work: () => T, traceparent?: string): T =>
  runWithContext(contextFrom('agent', { correlationId: 'req-1', traceparent }), work);

describe('spans', () => {
  beforeEach(() => turnOn());
  afterEach(() => setActiveTracing(null));

  it('hang under each other, and the first one begins the trace that the log lines name', async () => {
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

  it('begin under the span that the request came with', async () => {
    const parent = newTraceparent();
    await inContext(() => withSpan({ name: 'served' }, () => Promise.resolve()), parent);
    expect(span('served').parentSpanContext?.spanId).toBe(parseTraceparent(parent)?.spanId);
  });

  it('of work that runs side by side are siblings', async () => {
    await inContext(() =>
      withSpan({ name: 'both' }, () =>
        Promise.all(['a', 'b'].map((name) => withSpan({ name }, () => Promise.resolve(currentContext())))),
      ),
    );
    for (const name of ['a', 'b'])
      expect(span(name).parentSpanContext?.spanId).toBe(span('both').spanContext().spanId);
  });

  it('carry nothing but what is on the allowlist, and never the text of an error', async () => {
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

  it('lose what a library puts into events, links and status', () => {
    const foreign = provider.getTracer('a library').startSpan('foreign');
    foreign.recordException(new Error('CANARY'));
    foreign.setStatus({ code: 2, message: 'CANARY' });
    foreign.addLink({ context: foreign.spanContext(), attributes: { text: 'CANARY' } });
    foreign.end();
    expect(JSON.stringify({ ...span('foreign'), resource: null })).not.toContain('CANARY');
  });

  it('are not made outside of a request, or in a trace that its sender does not sample', async () => {
    await withSpan({ name: 'nobody asked' }, () => Promise.resolve());
    const unsampled = newTraceparent().replace(/01$/, '00');
    await inContext(() => withSpan({ name: 'unsampled' }, () => Promise.resolve()), unsampled);
    expect(spans()).toEqual([]);
  });

  it('of a trace that the sampler leaves out tell the next service so', async () => {
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

  it('has its children before it is written, whoever makes them', async () => {
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

  it('knows when a UUIDv7 was made, and of no other', () => {
    const before = Date.now();
    expect(timeOfUuid(uuidIds.next())).toBeGreaterThanOrEqual(before);
    expect(timeOfUuid('0af76519-16cd-43dd-8448-eb211c80319c')).toBeNull();
    expect(timeOfUuid('nonsense')).toBeNull();
  });
});

describe('a trace that goes through Temporal', () => {
  beforeEach(() => turnOn());
  afterEach(() => setActiveTracing(null));

  it('goes on where its headers arrive', async () => {
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
  it('nothing is made: the context stays the one that it was', async () => {
    const context = contextFrom('agent');
    await runWithContext(context, () =>
      withSpan({ name: 'nothing' }, () => Promise.resolve(expect(currentContext()).toBe(context))),
    );
    expect(openSpan({ name: 'nothing' }, context).context).toBe(context);
  });
});
