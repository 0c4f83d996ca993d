import type { LogEvent, RouteRequest } from '@antiphon/client';

/** Filters of the page, by their names in the URL and in the API. */
export const FILTERS = [
  'type',
  'excludeType',
  'category',
  'agent',
  'session',
  'run',
  'stream',
  'severity',
  'text',
  'since',
  'until',
] as const;
export type FilterName = (typeof FILTERS)[number];
export type Filters = Readonly<Partial<Record<FilterName, string>>>;

/** Filters that answer a usual question. */
export const PRESETS: readonly { readonly name: string; readonly filters: Filters }[] = [
  { name: 'Failures', filters: { severity: 'error' } },
  { name: 'Money', filters: { category: 'budget' } },
  { name: 'Files', filters: { category: 'file' } },
  { name: 'Messages', filters: { type: 'TurnRequested,AgentMessageSent' } },
];

/** Returns true if two sets of filters are the same. */
export const areSame = (one: Filters, other: Filters): boolean =>
  FILTERS.every((name) => one[name] === other[name]);

export type EventsQuery = NonNullable<RouteRequest<'readEvents'>['query']>;

/** Returns the filters in the parameters of a URL. */
export const filtersOf = (search: string): Filters => {
  const params = new URLSearchParams(search);
  const found = FILTERS.map((name) => [name, params.get(name)?.trim() ?? ''] as const);
  return Object.fromEntries(found.filter(([, value]) => value !== ''));
};

const timeOf = (text: string): number => new Date(text).getTime();

const split = (list: string): readonly string[] => list.split(',').map((name) => name.trim());

/** Filters that the browser decides from one event. */
const CHECKS: Readonly<Partial<Record<FilterName, (event: LogEvent, wanted: string) => boolean>>> = {
  type: (event, wanted) => split(wanted).includes(event.type),
  excludeType: (event, wanted) => !split(wanted).includes(event.type),
  category: (event, wanted) => event.category === wanted,
  severity: (event, wanted) => event.severity === wanted,
  stream: (event, wanted) => event.streamId === wanted,
  since: (event, wanted) => timeOf(event.recordedAt) >= timeOf(wanted),
  until: (event, wanted) => timeOf(event.recordedAt) < timeOf(wanted),
  session: (event, wanted) => event.streamId === `session-${wanted}`,
};

/** Tells whether an event matches, as far as a browser can decide it; null asks the gateway. */
export const matches = (event: LogEvent, filters: Filters): boolean | null => {
  const given = FILTERS.filter((name) => filters[name] !== undefined);
  if (given.some((name) => CHECKS[name]?.(event, filters[name] ?? '') === false)) return false;
  return given.every((name) => CHECKS[name] !== undefined) ? true : null;
};
