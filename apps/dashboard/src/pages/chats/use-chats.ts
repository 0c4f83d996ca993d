import type { LogEvent, RouteReply } from '@antiphon/client';
import { useMemo } from 'react';
import { isAbout } from '../../data/event-pages.js';
import { useIdentity } from '../../data/identity.js';
import { useList } from '../../data/use-list.js';
import { useRead } from '../../data/use-read.js';

type Chat = RouteReply<'listChats'>['chats'][number];
type Session = RouteReply<'listSessions'>['sessions'][number];

/** A chat with the state of its session. */
export interface ChatEntry extends Pick<
  Chat,
  'id' | 'name' | 'agentId' | 'role' | 'sessionId' | 'createdAt'
> {
  readonly state: Session['state'];
  readonly turns: number;
  readonly lastAt: string;
  readonly lastPosition: number;
}

const PAGE = 200;

const isOfChats = ({ category, type }: LogEvent): boolean =>
  category === 'chat' ||
  (category === 'session' &&
    (type.startsWith('Turn') || type.startsWith('Approval') || type === 'SessionStarted'));

const toEntry = (chat: Chat, session: Session | undefined): ChatEntry => ({
  ...chat,
  state: session?.state ?? 'idle',
  turns: session?.turns ?? 0,
  lastAt: session?.lastAt ?? chat.createdAt,
  lastPosition: session?.lastPosition ?? 0,
});

/** Lists the chats of the workspace, the one with the newest activity first. */
export const useChats = () => {
  const { workspace } = useIdentity();
  const chats = useList(
    'listChats',
    { params: { id: workspace }, query: { limit: PAGE } },
    { changesOn: isAbout('chat') },
  );
  const sessions = useRead(
    'listSessions',
    { query: { limit: PAGE, channel: 'chat' } },
    { changesOn: isOfChats },
  );
  const entries = useMemo(() => {
    const states = new Map((sessions.data?.sessions ?? []).map((session) => [session.id, session]));
    const all = (chats.data?.chats ?? []).map((chat) => toEntry(chat, states.get(chat.sessionId)));
    return all.toSorted((a, b) => b.lastAt.localeCompare(a.lastAt));
  }, [chats.data, sessions.data]);
  return { entries, list: chats, isLoaded: chats.data !== undefined };
};
