import { randomFillSync } from 'node:crypto';
import type { Tracer } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';

/**
 * W3C trace context (https://www.w3.org/TR/trace-context/), as a `traceparent` header carries it.
 */
export interface TraceContext {
  /** 32 lower-case hex digits, not all zero. */
  readonly traceId: string;
  /** 16 lower-case hex digits, not all zero: the span that sent the message. */
  readonly spanId: string;
  readonly sampled: boolean;
}

const ZERO_TRACE = '0'.repeat(32);
const ZERO_SPAN = '0'.repeat(16);

/**
 * Parses a `traceparent`; returns null for a value that the specification tells receivers to
 * ignore.
 */
export const parseTraceparent = (text: string | undefined): TraceContext | null => {
  const parsed = text === undefined ? null : parseTraceParent(text);
  if (parsed === null) return null;
  const { traceId, spanId, traceFlags } = parsed;
  return { traceId, spanId, sampled: (traceFlags & 1) === 1 };
};

export const formatTraceparent = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;

// One system call fills the pool for 170 spans: each message takes several ids.
const pool = Buffer.alloc(4_096);
let used = pool.length;
const randomHex = (bytes: number): string => {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const hex = pool.toString('hex', used, used + bytes);
  used += bytes;
  return hex;
};

const nonZero = (bytes: number, zero: string): string => {
  const hex = randomHex(bytes);
  return hex === zero ? nonZero(bytes, zero) : hex;
};

const newTraceId = (): string => nonZero(16, ZERO_TRACE);
const newSpanId = (): string => nonZero(8, ZERO_SPAN);

/** Makes the `traceparent` of a new trace. */
export const newTraceparent = (): string =>
  formatTraceparent({ traceId: newTraceId(), spanId: newSpanId(), sampled: true });

/** Makes a new span of the same trace, or a new trace when the parent is invalid. */
export const childTraceparent = (parent: string | undefined): string => {
  const context = parseTraceparent(parent);
  return context ? formatTraceparent({ ...context, spanId: newSpanId() }) : newTraceparent();
};

/** Generates span ids as OpenTelemetry's `IdGenerator`; a caller can choose the next span's ids. */
export class SpanIds {
  #traceId: string | undefined;
  #spanId: string | undefined;

  generateTraceId(): string {
    const id = this.#traceId ?? newTraceId();
    this.#traceId = undefined;
    return id;
  }

  generateSpanId(): string {
    const id = this.#spanId ?? newSpanId();
    this.#spanId = undefined;
    return id;
  }

  /** Sets the ids of the next span, which must be started synchronously. */
  setNext(ids: { readonly traceId?: string; readonly spanId?: string }): void {
    this.#traceId = ids.traceId;
    this.#spanId = ids.spanId;
  }
}

const UUID_TIME = /^([0-9a-f]{8})-([0-9a-f]{4})-7/;

/**
 * Returns the id of the one span that a UUID stands for: its last 64 bits. They are random, and
 * never zero because two of them hold the variant.
 */
export const spanIdOf = (uuid: string): string => uuid.replaceAll('-', '').slice(-16).toLowerCase();

/** Returns the creation time of a UUIDv7, ms since the epoch; null for any other id. */
export const timeOfUuid = (uuid: string): number | null => {
  const [, high, low] = UUID_TIME.exec(uuid) ?? [];
  return high === undefined || low === undefined ? null : Number.parseInt(high + low, 16);
};

/** Tracer and id generator of a process that exports spans. */
export interface ActiveTracing {
  readonly tracer: Tracer;
  readonly ids: SpanIds;
}

let active: ActiveTracing | null = null;

/** Turns tracing on for this process, or off with null: then no span and no span id is made. */
export const setActiveTracing = (next: ActiveTracing | null): void => void (active = next);

export const activeTracing = (): ActiveTracing | null => active;
