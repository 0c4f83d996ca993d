import type { LogEvent } from '@antiphon/client';
import { withMessage } from './read-fields.js';

/** Selects events of some categories. */
export const isAbout =
  (...categories: readonly string[]) =>
  ({ category }: LogEvent): boolean =>
    categories.includes(category);

/** Returns the page on which an event is best read. */
export const pageOf = ({ streamId, category, position, data }: LogEvent): string => {
  const { agentId } = (data ?? {}) as { readonly agentId?: unknown };
  if (category === 'agent' && typeof agentId === 'string') return `/agents/${encodeURIComponent(agentId)}`;
  const id = streamId.slice(category.length + 1);
  if (category === 'session' && !id.startsWith('key-')) return `/sessions/${id}`;
  if (category === 'task') return `/tasks/${id}`;
  if (category === 'run') return `/runs/${id}`;
  return `/events?open=${position}`;
};

/** Returns the page that explains an event of a turn, or null for other events. */
export const whyPageOf = ({ streamId, category, eventId, data }: LogEvent): string | null => {
  const { turnId } = (data ?? {}) as { readonly turnId?: unknown };
  if (category !== 'session' || typeof turnId !== 'string') return null;
  return `/sessions/${streamId.slice(category.length + 1)}/why/${eventId}`;
};

const MAX_SUMMARY = 140;
/** Fields of events that say most, in this order. */
const TELLING = [
  'agentId',
  'name',
  'tool',
  'path',
  'title',
  'subject',
  'predicate',
  'object',
  'scopeKey',
  'model',
  'code',
];
const TEXTS = ['content', 'text', 'message', 'reason', 'prompt'];

/** Returns a line about the data of an event, so that a reader need not open it. */
export const summaryOf = ({ data }: LogEvent): string => {
  if (data === null || typeof data !== 'object') return '';
  const fields = new Map(Object.entries(withMessage(data)));
  const pick = (names: readonly string[]): string[] =>
    names
      .map((name) => fields.get(name))
      .filter((value) => typeof value === 'string' && value !== '')
      // A text may have a megabyte. White space within the line takes a part of the room.
      .map((value) => String(value).slice(0, 4 * MAX_SUMMARY));
  const [text] = pick(TEXTS);
  const parts = [...pick(TELLING).slice(0, 3), ...(text === undefined ? [] : [text])];
  const line = parts.join(' · ').replaceAll(/\s+/g, ' ');
  return line.length > MAX_SUMMARY ? `${line.slice(0, MAX_SUMMARY)}…` : line;
};
