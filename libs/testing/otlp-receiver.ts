import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A span as a collector receives it. */
export interface ReceivedSpan {
  readonly service: string;
  readonly name: string;
  /** OTLP: 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the root of a trace. */
  readonly parentSpanId: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: { readonly code?: number; readonly message?: string };
  readonly events: readonly unknown[];
  readonly startNs: bigint;
  readonly endNs: bigint;
}

export interface OtlpReceiver {
  /** Value for `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** Names of the received metrics. */
  readonly metrics: ReadonlySet<string>;
  /** All request bodies, for searches. */
  readonly bodies: readonly string[];
  readonly contentTypes: ReadonlySet<string>;
  /** Resolves with the result of `find` once it returns one. */
  waitFor<T>(what: string, find: (spans: readonly ReceivedSpan[]) => T | undefined): Promise<T>;
  close(): Promise<void>;
}

interface Value {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values: readonly Value[] };
}
interface KeyValue {
  readonly key: string;
  readonly value: Value;
}
interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes?: readonly KeyValue[];
  readonly status?: ReceivedSpan['status'];
  readonly events?: readonly unknown[];
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}
interface Body {
  readonly resourceSpans?: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
  readonly resourceMetrics?: readonly {
    readonly scopeMetrics: readonly { readonly metrics: readonly { readonly name: string }[] }[];
  }[];
}

const plain = (value: Value): unknown =>
  value.arrayValue
    ? value.arrayValue.values.map(plain)
    : (value.stringValue ??
      value.boolValue ??
      (value.intValue === undefined ? value.doubleValue : Number(value.intValue)));

const recordOf = (attributes: readonly KeyValue[] = []): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]));

const spansOf = ({ resourceSpans = [] }: Body): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        service: String(recordOf(resource.attributes)['service.name']),
        name: span.name,
        kind: span.kind,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? '',
        attributes: recordOf(span.attributes),
        status: span.status ?? {},
        events: span.events ?? [],
        startNs: BigInt(span.startTimeUnixNano),
        endNs: BigInt(span.endTimeUnixNano),
      })),
    ),
  );

const namesOf = ({ resourceMetrics = [] }: Body): string[] =>
  resourceMetrics.flatMap(({ scopeMetrics }) =>
    scopeMetrics.flatMap(({ metrics }) => metrics.map(({ name }) => name)),
  );

/** Maximum time that a test waits for a span. */
const DEADLINE_MS = 30_000;

/** A collector for OTLP over HTTP. It stores JSON bodies, and only counts protobuf ones. */
class Receiver implements OtlpReceiver {
  url = '';
  readonly spans: ReceivedSpan[] = [];
  readonly metrics = new Set<string>();
  readonly bodies: string[] = [];
  readonly contentTypes = new Set<string>();
  private readonly checks = new Set<() => void>();
  private readonly server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      this.receive(request.headers['content-type'] ?? '', Buffer.concat(chunks).toString('utf8'));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });

  async listen(): Promise<void> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  waitFor<T>(what: string, find: (spans: readonly ReceivedSpan[]) => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.checks.delete(check);
        const names = this.spans.map(({ name }) => name).join(', ');
        reject(new Error(`timed out waiting for ${what}; received ${names}`));
      }, DEADLINE_MS);
      const check = (): void => {
        const found = find(this.spans);
        if (found === undefined) return;
        clearTimeout(timer);
        this.checks.delete(check);
        resolve(found);
      };
      this.checks.add(check);
      check();
    });
  }

  async close(): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, 'close');
  }

  private receive(type: string, body: string): void {
    this.contentTypes.add(type);
    this.bodies.push(body);
    if (type.startsWith('application/json')) {
      const parsed = JSON.parse(body) as Body;
      this.spans.push(...spansOf(parsed));
      for (const name of namesOf(parsed)) this.metrics.add(name);
    }
    for (const check of this.checks) check();
  }
}

/** Starts a collector on a free loopback port. */
export const startOtlpReceiver = async (): Promise<OtlpReceiver> => {
  const receiver = new Receiver();
  await receiver.listen();
  return receiver;
};

/**
 * Returns the faults of a trace as a tree: no or several roots, or spans whose parent is missing.
 */
export const treeProblems = (spans: readonly ReceivedSpan[], remoteParent = ''): string[] => {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const roots = spans.filter(({ parentSpanId }) => parentSpanId === remoteParent);
  const orphans = spans.filter(({ parentSpanId }) => parentSpanId !== remoteParent && !ids.has(parentSpanId));
  return [
    ...(roots.length === 1 ? [] : [`${roots.length} roots: ${roots.map(({ name }) => name).join(', ')}`]),
    ...(ids.size === spans.length ? [] : ['two spans have one id']),
    ...orphans.map(({ service, name }) => `orphan: ${service} ${name}`),
  ];
};
