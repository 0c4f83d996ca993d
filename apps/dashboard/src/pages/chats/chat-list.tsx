import { useEffect, useId, useMemo, useState } from 'react';
import { Link, navigate } from '../../data/router.js';
import { useStore } from '../../data/store.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { Icon, type IconName } from '../../ui/icon.js';
import { css as ui, IconButton, Loading, ProblemBox, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { ShowMore } from '../show-more.js';
import { DeleteDialog, RenameDialog } from './chat-dialogs.js';
import { seenChats } from './seen-chats.js';
import { useChats, type ChatEntry, type ChatFilter } from './use-chats.js';
import css from './chats.module.css';

const DAY_MS = 86_400_000;
/** Pause after which typed words are searched, ms. */
const TYPING_MS = 250;

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

/** An action of a chat that asks in a dialog. */
type Asked = 'rename' | 'delete';

interface RowProps {
  readonly chat: ChatEntry;
  readonly isCurrent: boolean;
  readonly isUnread: boolean;
  /** Id of the menu of the list. */
  readonly menu: string;
  readonly onMenu: (chat: ChatEntry) => void;
}

const Row = ({ chat, isCurrent, isUnread, menu, onMenu }: RowProps) => {
  const [icon, word] = STATES[chat.state];
  return (
    <li className={css.listItem}>
      <Link
        to={`/chats/${chat.id}`}
        className={css.listRow}
        aria-current={isCurrent ? 'page' : undefined}
        data-state={chat.state}
        data-unread={isUnread ? '' : undefined}
      >
        <Icon name={icon} size={14} />
        <span className={css.listName} data-tip={chat.name}>
          <VisibleText text={chat.name} />
        </span>
        <span className={css.listFacts}>
          {chat.state !== 'idle' && `${word} · `}
          {isUnread && 'unread · '}
          {chat.agentId} · <Time at={chat.lastAt} />
        </span>
      </Link>
      <IconButton
        icon="menu"
        label={`Actions of ${chat.name}`}
        popoverTarget={menu}
        onClick={() => onMenu(chat)}
      />
    </li>
  );
};

interface FiltersProps {
  readonly filter: ChatFilter;
  readonly onChange: (filter: ChatFilter) => void;
}

/** Chooses the role and the state of the chats that are listed, and words of their names. */
const Filters = ({ filter, onChange }: FiltersProps) => {
  const agents = useRead('listAgents', {}, { hasPast: false }).data?.agents ?? [];
  const [text, setText] = useState('');
  const words = text.trim();
  useEffect(() => {
    if (words === (filter.q ?? '')) return;
    const { q: _, ...others } = filter;
    const timer = setTimeout(() => onChange(words === '' ? others : { ...others, q: words }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [words, filter, onChange]);
  const choose = (name: 'agent' | 'state', value: string): void => {
    const { [name]: _, ...others } = filter;
    onChange(value === '' ? others : { ...others, [name]: value });
  };
  return (
    <div role="search" aria-label="Filter the chats" className={css.listFilters}>
      <input
        type="search"
        className={ui.input}
        aria-label="Words of a chat"
        placeholder="Name or first message"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <select
        className={ui.input}
        aria-label="Chats with"
        value={filter.agent ?? ''}
        onChange={(event) => choose('agent', event.target.value)}
      >
        <option value="">any role</option>
        {agents.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      <select
        className={ui.input}
        aria-label="Chats that are"
        value={filter.state ?? ''}
        onChange={(event) => choose('state', event.target.value)}
      >
        <option value="">any state</option>
        {Object.entries(STATES).map(([state, [, word]]) => (
          <option key={state} value={state}>
            {word}
          </option>
        ))}
      </select>
    </div>
  );
};

interface MenuProps {
  readonly id: string;
  readonly ask: (what: Asked) => void;
}

/** Actions of the chat whose button opened it. */
const ListMenu = ({ id, ask }: MenuProps) => (
  <div id={id} popover="auto" role="group" aria-label="Actions of the listed chat" className={css.menu}>
    <ActButton permission="sessions:write" icon="pencil" onClick={() => ask('rename')}>
      Rename
    </ActButton>
    <ActButton permission="sessions:write" icon="trash" onClick={() => ask('delete')}>
      Delete
    </ActButton>
  </div>
);

interface ListProps {
  /** Id of the chat that the page shows. */
  readonly current: string | null;
}

const byDay = (chats: readonly ChatEntry[]) => [...Map.groupBy(chats, ({ lastAt }) => groupOf(lastAt))];

const NO_FILTER: ChatFilter = {};

/** Lists the chats by day, with filters for their words, roles and states. */
export const ChatList = ({ current }: ListProps) => {
  const [filter, setFilter] = useState(NO_FILTER);
  const { entries, list } = useChats(filter);
  const seen = useStore(seenChats);
  const groups = useMemo(() => byDay(entries), [entries]);
  const [chosen, choose] = useState<ChatEntry | null>(null);
  const [asked, ask] = useState<Asked | null>(null);
  const menu = useId();
  const close = (): void => ask(null);
  return (
    <nav className={css.list} aria-label="Chats">
      <Filters filter={filter} onChange={setFilter} />
      <ListMenu id={menu} ask={ask} />
      {chosen && asked === 'rename' && <RenameDialog chat={chosen} onClose={close} />}
      {chosen && asked === 'delete' && (
        <DeleteDialog
          chat={chosen}
          onClose={close}
          onDone={() => chosen.id === current && navigate('/chats')}
        />
      )}
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
                menu={menu}
                onMenu={choose}
                isUnread={
                  chat.id !== current && chat.lastPosition > (seen[chat.id] ?? Number.POSITIVE_INFINITY)
                }
              />
            ))}
          </ul>
        </section>
      ))}
      {list.data && entries.length === 0 && Object.keys(filter).length > 0 && (
        <p className={ui.muted}>No chat matches.</p>
      )}
      <ShowMore list={list} what="chats" count={entries.length} />
    </nav>
  );
};
