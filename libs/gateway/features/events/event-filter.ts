import { runStream, sessionStream } from '@antiphon/contracts/agent';
import type { EventFilter, EventsQuery } from '@antiphon/contracts/gateway';
import { severityOf, TYPES_BY_SEVERITY } from '@antiphon/gateway-domain';

/** Conditions of a statement. Every value is a bound parameter. */
export interface Conditions {
  readonly conditions: string[];
  readonly values: unknown[];
  add(condition: (parameter: string) => string, value: unknown): void;
}

export const createConditions = (): Conditions => {
  const conditions: string[] = [];
  const values: unknown[] = [];
  return {
    conditions,
    values,
    add: (condition, value) => {
      values.push(value);
      conditions.push(condition(`$${values.length}`));
    },
  };
};

/** Returns the event types of a list with commas between. */
export const typesOf = (list: string): readonly string[] => list.split(',');

/** Returns the event streams that a filter names. An event must be of all of them. */
export const namedStreams = ({ run, session, stream }: EventFilter): readonly string[] => [
  ...(run === undefined ? [] : [runStream(run)]),
  ...(session === undefined ? [] : [sessionStream(session)]),
  ...(stream === undefined ? [] : [stream]),
];

const addSeverity = ({ add }: Conditions, severity: EventFilter['severity']): void => {
  const { error, warning } = TYPES_BY_SEVERITY;
  if (severity === 'info') add((p) => `type <> all(${p})`, [...error, ...warning]);
  else if (severity !== undefined) add((p) => `type = any(${p})`, [...TYPES_BY_SEVERITY[severity]]);
};

/** SQL that is true for an event that names an agent itself, as those of agents and messages do. */
const namesAgent = (parameter: string): string =>
  `(category = 'agent' and (data ->> 'agentId' = ${parameter} or data #>> '{to,agentId}' = ${parameter}))`;

/**
 * Adds a filter to the conditions of a statement. `streams` are those of the agent that the filter
 * names.
 */
export const addEventFilter = (
  target: Conditions,
  filter: EventFilter,
  streams: readonly string[] | null,
): void => {
  const { add } = target;
  const { type, excludeType, category, agent } = filter;
  if (type !== undefined) add((p) => `type = any(${p})`, typesOf(type));
  if (excludeType !== undefined) add((p) => `type <> all(${p})`, typesOf(excludeType));
  if (category !== undefined) add((p) => `category = ${p}`, category);
  for (const stream of namedStreams(filter)) add((p) => `stream_id = ${p}`, stream);
  if (agent !== undefined) {
    target.values.push(streams ?? []);
    const isOfStream = `stream_id = any($${target.values.length})`;
    add((p) => `(${isOfStream} or ${namesAgent(p)})`, agent);
  }
  addSeverity(target, filter.severity);
};

/** Positions after `after`, and up to `upTo` unless it is null. */
export interface Range {
  readonly after: number;
  readonly upTo: number | null;
}

/** A matching event. */
export interface Found {
  readonly position: number;
  /** Highest possible size of the event, bytes. */
  readonly bytes: number;
}

/** Adds all conditions of a query but its text: those of a workspace's events in a range. */
export const addFilters = (
  target: Conditions,
  workspace: string,
  query: EventsQuery,
  { after, upTo }: Range,
  streams: readonly string[] | null,
): void => {
  const { add } = target;
  add((p) => `workspace = ${p}`, workspace);
  addEventFilter(target, query, streams);
  if (query.since !== undefined) add((p) => `recorded_at >= ${p}`, query.since);
  if (query.until !== undefined) add((p) => `recorded_at < ${p}`, query.until);
  add((p) => `position > ${p}`, after);
  if (upTo !== null) add((p) => `position <= ${p}`, upTo);
};

/** Maximum size of one event, with its metadata. */
const EVENT_BYTES = 1.25 * 1024 * 1024;
/** The best ratio by which PostgreSQL compresses a value. */
const MAX_RATIO = 256;

const maxSize = (column: string): string =>
  `case when pg_column_compression(${column}) is null then 1 else ${MAX_RATIO} end * pg_column_size(${column})`;

/**
 * SQL of the highest possible size of an event. A compressed value counts as the largest that it
 * may be; its exact size would need all of it.
 */
export const EVENT_SIZE_SQL = `least(${EVENT_BYTES}, ${maxSize('data')} + ${maxSize('metadata')})`;

/** The part of an event that filters examine. */
export interface FilteredEvent {
  readonly type: string;
  readonly category: string;
  readonly streamId: string;
  /** Agents that the event is about. */
  readonly agents: ReadonlySet<string>;
}

/** Returns true for an event that a filter selects, as `addEventFilter` does in SQL. */
export const matchesFilter = (filter: EventFilter, event: FilteredEvent): boolean => {
  const { type, excludeType, category, agent, severity } = filter;
  if (type !== undefined && !typesOf(type).includes(event.type)) return false;
  if (excludeType !== undefined && typesOf(excludeType).includes(event.type)) return false;
  if (category !== undefined && category !== event.category) return false;
  if (severity !== undefined && severity !== severityOf(event.type)) return false;
  if (agent !== undefined && !event.agents.has(agent)) return false;
  return namedStreams(filter).every((stream) => stream === event.streamId);
};

/** Types without a partial index, as in the migration `event_queries`: most events are of them. */
const FREQUENT_TYPES: ReadonlySet<string> = new Set([
  ...['TurnRequested', 'ModelCallStarted', 'ModelCallCompleted', 'ToolCallRequested', 'ToolCallClaimed'],
  ...['ToolCallCompleted', 'TurnCompleted', 'BudgetReserved', 'BudgetSettled'],
]);

/** Returns true if an index finds the events of a query in the order of the log. */
export const hasIndex = (query: EventsQuery): boolean => {
  const { type, severity, agent, text } = query;
  if (text !== undefined) return false;
  if (namedStreams(query).length > 0) return true;
  if (agent !== undefined) return false;
  const isRare = severity === 'error' || severity === 'warning';
  return isRare || (type !== undefined && !typesOf(type).some((one) => FREQUENT_TYPES.has(one)));
};
