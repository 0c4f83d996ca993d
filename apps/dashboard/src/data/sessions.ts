import type { LogEvent } from '@antiphon/client';
import { client } from './gateway.js';

/** A session as the list shows it. */
export interface SessionSummary {
  readonly id: string;
  readonly key: string | null;
  readonly agentId: string | null;
  readonly state: 'running' | 'idle';
  readonly turns: number;
  readonly lastAt: string;
  readonly title: string | null;
}

const TYPES = 'SessionStarted,TurnRequested,TurnCompleted,TurnFailed,TurnCancelled';
const NEWEST = 1_000;

const begin = ({ streamId, recordedAt }: LogEvent): SessionSummary => ({
  id: streamId.slice('session-'.length),
  key: null,
  agentId: null,
  state: 'idle',
  turns: 0,
  lastAt: recordedAt,
  title: null,
});

const fold = (session: SessionSummary, { type, data, recordedAt }: LogEvent): SessionSummary => {
  const { agentId = null, sessionKey = null, content } = data as Record<string, string>;
  if (type === 'SessionStarted') return { ...session, agentId, key: sessionKey };
  if (type !== 'TurnRequested') return { ...session, state: 'idle', lastAt: recordedAt };
  const title = session.title ?? content?.slice(0, 100) ?? null;
  return { ...session, title, turns: session.turns + 1, state: 'running', lastAt: recordedAt };
};

/** Folds events of many sessions, oldest first, into a list with the newest turn first. */
export const foldSessions = (events: readonly LogEvent[]): readonly SessionSummary[] => {
  const sessions = new Map<string, SessionSummary>();
  for (const event of events)
    sessions.set(event.streamId, fold(sessions.get(event.streamId) ?? begin(event), event));
  return [...sessions.values()].toSorted((a, b) => b.lastAt.localeCompare(a.lastAt));
};

/** Reads the sessions of the newest turns, as of a position of the log. */
export const readSessions = async (
  { agent, at }: { readonly agent?: string | undefined; readonly at: number | null },
  signal: AbortSignal,
): Promise<readonly SessionSummary[]> => {
  const query = {
    type: TYPES,
    order: 'desc',
    limit: NEWEST,
    ...(agent ? { agent } : {}),
    ...(at === null ? {} : { at }),
  } as const;
  const { events } = await client.http.readEvents({ query, signal });
  return foldSessions(events.toReversed());
};
