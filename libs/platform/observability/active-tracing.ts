import type { Tracer } from '@opentelemetry/api';
import type { SpanIds } from './span-ids.js';

/** What spans are made with while tracing is on. */
export interface ActiveTracing {
  readonly tracer: Tracer;
  readonly ids: SpanIds;
}

let active: ActiveTracing | null = null;

/** Turns tracing on for this process, or with null off: then no span is made, and no id for one. */
export const setActiveTracing = (next: ActiveTracing | null): void => void (active = next);

export const activeTracing = (): ActiveTracing | null => active;
