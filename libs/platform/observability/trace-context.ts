import { randomFillSync } from 'node:crypto';

/** W3C trace context (https://www.w3.org/TR/trace-context/), as far as it travels in a `traceparent` header. */
export interface TraceContext {
  /** 32 lower-case hex digits, not all zero. */
  readonly traceId: string;
  /** 16 lower-case hex digits, not all zero: the span that sent the message. */
  readonly spanId: string;
  readonly sampled: boolean;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const ZERO_TRACE = '0'.repeat(32);
const ZERO_SPAN = '0'.repeat(16);

/** Reads a `traceparent`; null for anything the specification tells a receiver to ignore. */
export const parseTraceparent = (text: string | undefined): TraceContext | null => {
  const match = TRACEPARENT.exec(text ?? '');
  if (!match) return null;
  const [, version = '', traceId = '', spanId = '', flags = '', rest] = match;
  if (version === 'ff' || (version === '00' && rest !== undefined)) return null;
  if (traceId === ZERO_TRACE || spanId === ZERO_SPAN) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
};

export const formatTraceparent = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;

// One call to the kernel fills the pool for 170 spans: ids are made several times in every message.
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

export const newTraceId = (): string => nonZero(16, ZERO_TRACE);
export const newSpanId = (): string => nonZero(8, ZERO_SPAN);

/** The root of a new trace. */
export const newTraceparent = (): string =>
  formatTraceparent({ traceId: newTraceId(), spanId: newSpanId(), sampled: true });

/** A new span of the same trace, or a new trace when the parent cannot be read. */
export const childTraceparent = (parent: string | undefined): string => {
  const context = parseTraceparent(parent);
  return context ? formatTraceparent({ ...context, spanId: newSpanId() }) : newTraceparent();
};
