import { client } from './gateway.js';

/** An event as the position bar names it. */
export interface Moment {
  readonly position: number;
  readonly type: string;
  readonly recordedAt: string;
}

const MAX_KEPT = 2_000;
const kept = new Map<number, Moment>();

/** Returns the event at a position, or the nearest one before it that this caller may read. */
export const fetchEventAt = async (position: number, signal: AbortSignal): Promise<Moment | null> => {
  const known = kept.get(position);
  if (known) return known;
  const query = { after: position - 1, limit: 1 };
  const { events } = await client.http.readEvents({ query, signal });
  const [event] = events;
  if (!event || event.position !== position) return null;
  const moment = { position, type: event.type, recordedAt: event.recordedAt };
  if (kept.size >= MAX_KEPT) kept.clear();
  kept.set(position, moment);
  return moment;
};
