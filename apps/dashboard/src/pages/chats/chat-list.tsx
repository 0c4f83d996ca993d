import { useMemo, useState } from 'react';
import { Link } from '../../data/router.js';
import { useStore } from '../../data/store.js';
import { Icon, type IconName } from '../../ui/icon.js';
import { css as ui, Loading, ProblemBox, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { ShowMore } from '../show-more.js';
import { seenChats } from './seen-chats.js';
import { useChats, type ChatEntry } from './use-chats.js';
import css from './chats.module.css';

const DAY_MS = 86_400_000;

const startOfDay = (time: number): number => new Date(time).setHours(0, 0, 0, 0);

/** Names the group of a chat by its last activity. */
const groupOf = (at: string): string => {
  const days = Math.round((startOfDay(Date.now()) - startOfDay(Date.parse(at))) / DAY_MS);
  if (days <= 0) return 'Today';
  if (days === 1) return 'Yesterday';
  return days < 7 ? 'This week' : days < 31 ? 'This month' : 'Earlier';
};

const STATES: Readonly<Record<ChatEntry['state'], readonly [IconName, string]>> = {
  idle: ['dot', 'idle'],
  working: ['play', 'answers'],
  waiting: ['warning', 'waits for you'],
};

interface RowProps {
  readonly chat: ChatEntry;
  readonly isCurrent: boolean;
  readonly isUnread: boolean;
}

const Row = ({ chat, isCurrent, isUnread }: RowProps) => {
  const [icon, word] = STATES[chat.state];
  return (
    <li>
      <Link
        to={`/chats/${chat.id}`}
        className={css.listRow}
        aria-current={isCurrent ? 'page' : undefined}
        data-state={chat.state}
        data-unread={isUnread ? '' : undefined}
      >
        <Icon name={icon} size={14} />
        <span className={css.listName}>
          <VisibleText text={chat.name} />
        </span>
        <span className={css.listFacts}>
          {chat.state !== 'idle' && `${word} · `}
          {isUnread && 'unread · '}
          {chat.agentId} · <Time at={chat.lastAt} />
        </span>
      </Link>
    </li>
  );
};

interface ListProps {
  /** Id of the chat that the page shows. */
  readonly current: string | null;
}

/** Lists the chats by day, with a filter for their names, agents and states. */
export const ChatList = ({ current }: ListProps) => {
  const { entries, list } = useChats();
  const seen = useStore(seenChats);
  const [text, setText] = useState('');
  const wanted = text.trim().toLowerCase();
  const groups = useMemo(() => {
    const shown = entries.filter(({ name, agentId, state }) =>
      `${name} ${agentId} ${STATES[state][1]}`.toLowerCase().includes(wanted),
    );
    return [...Map.groupBy(shown, ({ lastAt }) => groupOf(lastAt))];
  }, [entries, wanted]);
  return (
    <nav className={css.list} aria-label="Chats">
      <input
        type="search"
        className={ui.input}
        aria-label="Filter the chats"
        placeholder="Name, agent or state"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {list.problem && <ProblemBox problem={list.problem} retry={list.refresh} />}
      {list.isLoading && <Loading what="chats" />}
      {groups.map(([day, chats]) => (
        <section key={day} aria-label={day}>
          <h2>{day}</h2>
          <ul>
            {chats.map((chat) => (
              <Row
                key={chat.id}
                chat={chat}
                isCurrent={chat.id === current}
                isUnread={
                  chat.id !== current && chat.lastPosition > (seen[chat.id] ?? Number.POSITIVE_INFINITY)
                }
              />
            ))}
          </ul>
        </section>
      ))}
      {entries.length > 0 && groups.length === 0 && <p className={ui.muted}>No chat matches.</p>}
      <ShowMore list={list} what="chats" count={entries.length} />
    </nav>
  );
};
