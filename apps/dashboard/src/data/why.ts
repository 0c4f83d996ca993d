import type { LogEvent } from '@antiphon/client';
import { numberOf, textOf } from './read-fields.js';

type Data = Readonly<Record<string, unknown>>;

/** A model call of a turn, as its events have it. */
export interface ModelCall {
  readonly attempt: number;
  readonly step: number;
  readonly provider: string;
  readonly model: string;
  /** Position of its start: the context is what was known there. */
  readonly position: number;
  readonly status: 'running' | 'completed' | 'failed';
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costMicroUsd: number;
  /** Input that a prompt cache read. */
  readonly cacheReadTokens: number;
  /** True if the provider did not report all of the usage. */
  readonly isEstimated: boolean;
  readonly durationMs: number | null;
}

/** A file that was in the context of a turn, or that the turn changed. */
export interface ContextFile {
  readonly path: string;
  readonly how: 'attached' | 'read' | 'changed';
  readonly position: number;
}

/** Events, calls, files and trace that led to the answer of a turn. */
export interface Explanation {
  readonly events: readonly LogEvent[];
  readonly calls: readonly ModelCall[];
  readonly files: readonly ContextFile[];
  /** Position of the newest event before the first model call; null if none was made. */
  readonly contextPosition: number | null;
  readonly traceId: string | null;
  readonly correlationId: string | null;
}

const dataOf = (event: LogEvent): Data => (event.data ?? {}) as Data;

const start = ({ position, recordedAt }: LogEvent, data: Data): ModelCall & { startedAt: string } => ({
  attempt: numberOf(data['attempt']),
  step: numberOf(data['step']),
  provider: textOf(data['provider']),
  model: textOf(data['model']),
  position,
  status: 'running',
  inputTokens: 0,
  outputTokens: 0,
  costMicroUsd: 0,
  cacheReadTokens: 0,
  isEstimated: false,
  durationMs: null,
  startedAt: textOf(data['startedAt']) || recordedAt,
});

const callsOf = (events: readonly LogEvent[]): readonly ModelCall[] => {
  const calls = new Map<number, ReturnType<typeof start>>();
  for (const event of events) {
    const data = dataOf(event);
    if (event.type === 'ModelCallStarted') calls.set(numberOf(data['attempt']), start(event, data));
    const call = calls.get(numberOf(data['attempt']));
    if (!call || (event.type !== 'ModelCallCompleted' && event.type !== 'ModelCallAborted')) continue;
    const usage = (data['usage'] ?? {}) as Data;
    const endedAt = textOf(data['completedAt']) || textOf(data['abortedAt']) || event.recordedAt;
    calls.set(call.attempt, {
      ...call,
      status: event.type === 'ModelCallCompleted' ? 'completed' : 'failed',
      inputTokens: numberOf(usage['inputTokens']),
      outputTokens: numberOf(usage['outputTokens']),
      costMicroUsd: numberOf(data['costMicroUsd']),
      cacheReadTokens: numberOf(usage['cacheReadTokens']),
      isEstimated: usage['estimated'] === true,
      durationMs: new Date(endedAt).getTime() - new Date(call.startedAt).getTime(),
    });
  }
  return [...calls.values()];
};

/** Returns true if a file that was attached at a position was taken away before another one. */
const isDetached = (log: readonly LogEvent[], before: number, since: number, data: unknown): boolean =>
  log.some(
    (event) =>
      event.type === 'ChatFileDetached' &&
      event.position > since &&
      event.position <= before &&
      dataOf(event)['path'] === (data as Data | null)?.['path'],
  );

const CHANGING_TOOLS: ReadonlySet<unknown> = new Set(['write', 'edit', 'move', 'rm']);

/** Returns the paths that the input of a file tool names. */
const pathsIn = (input: Data): readonly string[] => {
  const edits = Array.isArray(input['edits']) ? (input['edits'] as readonly Data[]) : [];
  return [input['path'], input['to'], ...edits.map((edit) => edit['path'])].map(textOf);
};

/** Returns the files of the calls that changed files and succeeded, each once. */
const changedIn = (events: readonly LogEvent[]): readonly ContextFile[] => {
  const succeeded = new Set(
    events.filter(({ type }) => type === 'ToolCallCompleted').map((event) => dataOf(event)['callId']),
  );
  const changed = new Map<string, ContextFile>();
  for (const event of events) {
    const { name, callId, input } = dataOf(event);
    if (event.type !== 'ToolCallRequested' || !CHANGING_TOOLS.has(name) || !succeeded.has(callId)) continue;
    for (const path of pathsIn((input ?? {}) as Data))
      if (!changed.has(path)) changed.set(path, { path, how: 'changed', position: event.position });
  }
  return [...changed.values()];
};

/** Returns the files that were attached before the turn, and those that it read or changed. */
const filesOf = (
  log: readonly LogEvent[],
  events: readonly LogEvent[],
  before: number,
): readonly ContextFile[] => {
  const attached = log
    .filter(
      ({ type, position, data }) =>
        type === 'ChatFileAttached' && position <= before && !isDetached(log, before, position, data),
    )
    .map((event) => ({
      path: textOf(dataOf(event)['path']),
      how: 'attached' as const,
      position: event.position,
    }));
  const read = events
    .filter((event) => event.type === 'ToolCallRequested' && dataOf(event)['name'] === 'read')
    .map((event) => ({
      path: textOf(((dataOf(event)['input'] ?? {}) as Data)['path']),
      how: 'read' as const,
      position: event.position,
    }));
  return [...attached, ...read, ...changedIn(events)].filter(({ path }) => path !== '');
};

/** Returns the trace of a W3C `traceparent`, or null. */
export const traceIdOf = (traceparent: unknown): string | null =>
  /^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(textOf(traceparent))?.[1] ?? null;

/** A turn, and the position of the event of it that a page is about; null for the whole turn. */
export interface WhyFocus {
  readonly turnId: string;
  readonly position: number | null;
}

/** Finds the turn of an id. The id is that of the turn, or the id or position of one of its events. */
export const findFocus = (log: readonly LogEvent[], id: string): WhyFocus | null => {
  if (log.some((event) => dataOf(event)['turnId'] === id)) return { turnId: id, position: null };
  const event = log.find(({ eventId, position }) => eventId === id || String(position) === id);
  const turnId = event ? textOf(dataOf(event)['turnId']) : '';
  return event && turnId !== '' ? { turnId, position: event.position } : null;
};

/** Explains a turn by the events of its session, which must be in the order of the log. */
export const explainTurn = (log: readonly LogEvent[], turnId: string): Explanation => {
  const events = log.filter((event) => dataOf(event)['turnId'] === turnId);
  const calls = callsOf(events);
  const first = calls[0];
  const requested = events[0]?.metadata as Data | undefined;
  return {
    events,
    calls,
    files: filesOf(log, events, events[0]?.position ?? 0),
    contextPosition: first ? first.position - 1 : null,
    traceId: traceIdOf(requested?.['traceparent']),
    correlationId: textOf(requested?.['correlationId']) || null,
  };
};
