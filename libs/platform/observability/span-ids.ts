import { newSpanId, newTraceId } from './trace-context.js';

/** Ids of spans; OpenTelemetry's `IdGenerator`, with ids that are known before their span is. */
export interface SpanIds {
  generateTraceId(): string;
  generateSpanId(): string;
  /** What the very next span is made with; taken by it synchronously. */
  next(ids: { readonly traceId?: string; readonly spanId?: string }): void;
}

export const createSpanIds = (): SpanIds => {
  let traceId: string | undefined;
  let spanId: string | undefined;
  return {
    generateTraceId: () => {
      const id = traceId ?? newTraceId();
      traceId = undefined;
      return id;
    },
    generateSpanId: () => {
      const id = spanId ?? newSpanId();
      spanId = undefined;
      return id;
    },
    next: (ids) => ({ traceId, spanId } = { traceId: undefined, spanId: undefined, ...ids }),
  };
};

const UUID_TIME = /^([0-9a-f]{8})-([0-9a-f]{4})-7/;

/** The id of the one span that a UUID stands for: its last, random 64 bits (never zero: two of them say the variant). */
export const spanIdOf = (uuid: string): string => uuid.replaceAll('-', '').slice(-16).toLowerCase();

/** When a UUIDv7 was made, in ms since the epoch; null for any other id. */
export const timeOfUuid = (uuid: string): number | null => {
  const [, high, low] = UUID_TIME.exec(uuid) ?? [];
  return high === undefined || low === undefined ? null : Number.parseInt(high + low, 16);
};
