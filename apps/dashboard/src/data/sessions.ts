import { fetchJson } from './gateway.js';

/** A session as the list shows it. */
export interface SessionSummary {
  readonly id: string;
  readonly key: string;
  readonly agentId: string;
  readonly state: string;
  readonly turns: number;
  readonly startedAt: string;
  readonly lastAt: string;
  readonly title: string | null;
}

export interface SessionPageReply {
  readonly sessions: readonly SessionSummary[];
  readonly nextCursor: string | null;
}

export const readSessions = (query: URLSearchParams, signal: AbortSignal): Promise<SessionPageReply> =>
  fetchJson<SessionPageReply>(`/api/v1/sessions?${query}`, { signal });
