import type { RouteReply } from '@antiphon/client';
import { client } from '../../data/gateway.js';
import { forkPointOf, type ForkPoint } from '../../data/fork-point.js';
import { sumUsage, type Transcript, type Turn } from '../../data/transcript.js';
import { useFetched, useRead } from '../../data/use-read.js';
import { formatCompact } from '../../ui/format.js';
import type { SessionLog } from './session-log.js';

/** Facts about a whole session, also while the page has only a part of its events. */
export interface Summary {
  readonly title: string | null;
  readonly agentId: string | null;
  readonly startedAt: string | null;
  readonly forkedFrom: ForkPoint | null;
  /** Number of all turns. */
  readonly count: number;
  readonly tokens: string;
  readonly costMicroUsd: number | null;
}

interface Start {
  readonly agentId: string | null;
  readonly startedAt: string | null;
  readonly forkedFrom: ForkPoint | null;
}

/** Reads the first events of a session, which never change. */
const readStart = async (sessionId: string, signal: AbortSignal): Promise<Start> => {
  const query = { stream: `session-${sessionId}`, limit: 2 };
  const { events } = await client.http.readEvents({ query, signal });
  const dataOf = (type: string) =>
    events.find((event) => event.type === type)?.data as Readonly<Record<string, unknown>> | undefined;
  const [started, forked] = [dataOf('SessionStarted'), dataOf('SessionForked')];
  const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);
  return {
    agentId: textOf(started?.['agentId']),
    startedAt: textOf(started?.['startedAt']),
    forkedFrom: forked ? forkPointOf(forked) : null,
  };
};

const MAX_TITLE = 80;

const shorten = (text: string): string => (text.length > MAX_TITLE ? `${text.slice(0, MAX_TITLE)}…` : text);

const titleOf = (turn: Turn | undefined): string | null => {
  if (!turn) return null;
  return turn.message.isDeleted ? 'a deleted message' : shorten(turn.message.text);
};

const foldSummary = ({ turns, agentId, startedAt, forkedFrom }: Transcript): Summary => {
  const [tokensIn, tokensOut] = [sumUsage(turns, 'inputTokens'), sumUsage(turns, 'outputTokens')];
  return {
    ...{ title: titleOf(turns[0]), agentId, startedAt, forkedFrom, count: turns.length },
    tokens: `${formatCompact(tokensIn)} in, ${formatCompact(tokensOut)} out`,
    costMicroUsd: sumUsage(turns, 'costMicroUsd'),
  };
};

type Read = RouteReply<'getSession'>;

const readSummary = (data: Read | undefined, start: Start | undefined, turns: readonly Turn[]): Summary => {
  const { agentId = null, startedAt = null, cost = null, title = null, turns: count } = data ?? {};
  return {
    ...(start ?? { agentId, startedAt, forkedFrom: null }),
    ...{ title: title === null ? null : shorten(title), count: count ?? turns.length },
    tokens: cost === null ? 'unknown' : `${formatCompact(cost.tokens)} in and out`,
    costMicroUsd: cost?.microUsd ?? null,
  };
};

/**
 * Says what a session is. A page that has all its events folds them. A part of a long session is
 * completed by a read.
 */
export const useSummary = (
  sessionId: string,
  log: SessionLog,
  transcript: Transcript,
  isDragged: boolean,
): Summary => {
  const isPart = log.isLoaded && (log.hasEarlier || log.hasLater);
  const start = useFetched(isPart ? `start of ${sessionId}` : null, (signal) => readStart(sessionId, signal));
  const { data } = useRead(
    'getSession',
    { params: { id: sessionId } },
    { isOff: !isPart || isDragged, changesOn: ({ streamId }) => streamId === `session-${sessionId}` },
  );
  return isPart ? readSummary(data, start.data, transcript.turns) : foldSummary(transcript);
};
