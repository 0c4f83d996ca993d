import type { LogEvent, RouteReply } from '@antiphon/client';
import { useMemo } from 'react';
import { useList } from '../../data/use-list.js';

type Session = RouteReply<'listSessions'>['sessions'][number];

/** A chat of the list, with the state of its session. */
export interface ChatEntry extends Pick<Session, 'agentId' | 'state' | 'turns' | 'lastPosition'> {
  readonly id: string;
  readonly name: string;
  readonly lastAt: string;
}

const PAGE = 100;

const isOfChats = ({ category, type }: LogEvent): boolean =>
  category === 'chat' || (category === 'session' && (type.startsWith('Turn') || type.startsWith('Approval')));

const toEntries = (sessions: readonly Session[]): readonly ChatEntry[] =>
  sessions.flatMap(({ chat, agentId, state, turns, lastAt, startedAt, lastPosition }) =>
    chat ? [{ ...chat, agentId, state, turns, lastPosition, lastAt: lastAt ?? startedAt }] : [],
  );

/** Filters of the list, which the server applies. */
export interface ChatFilter {
  /** Words of the name, or of the beginning of the first message. */
  readonly q?: string;
  readonly agent?: string;
  readonly state?: Session['state'];
}

/** Lists the chats of the workspace, the one with the newest activity first. */
export const useChats = (filter: ChatFilter) => {
  const query = { limit: PAGE, channel: 'chat', ...filter };
  const list = useList('listSessions', { query }, { changesOn: isOfChats });
  const entries = useMemo(() => toEntries(list.data?.sessions ?? []), [list.data]);
  return { entries, list };
};
