import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import { findById, type Kind } from '../data/find-id.js';
import { client } from '../data/gateway.js';
import { useFetched } from '../data/use-read.js';
import { Icon, type IconName } from '../ui/icon.js';
import { NAVIGATION } from './pages.js';
import { goToPosition } from './position-bar.js';
import { keepPosition, navigate } from './router.js';
import { nextTheme } from './theme.js';
import css from './shell.module.css';

interface Choice {
  readonly id: string;
  readonly icon: IconName;
  readonly title: string;
  readonly kind: string;
  readonly run: () => void;
}

const link = (to: string, icon: IconName, title: string, kind: string): Choice => ({
  id: to,
  icon,
  title,
  kind,
  run: () => navigate(keepPosition(to)),
});

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Returns choices of a position such as `#1024`. */
const choicesOfPosition = (text: string): Choice[] => {
  const position = /^#?(\d{1,15})$/.exec(text)?.[1];
  if (position === undefined) return [];
  return [
    {
      id: 'position',
      icon: 'clock',
      title: `Show everything as of event ${position}`,
      kind: 'position',
      run: () => goToPosition(Number(position)),
    },
    link(`/events?open=${position}`, 'events', `Open event ${position}`, 'event'),
  ];
};

const CHOICES_OF_KIND: Readonly<Record<Kind, (id: string) => Choice[]>> = {
  session: (id) => [
    link(`/sessions/${id}`, 'sessions', `Session ${id}`, 'session'),
    link(`/compare?b=${id}`, 'fork', `Compare session ${id}`, 'session'),
  ],
  run: (id) => [link(`/runs/${id}`, 'runs', `Run ${id}`, 'run')],
  turn: (id) => [link(`/why/${id}`, 'search', `Why turn ${id} answered as it did`, 'turn')],
};

interface Choices {
  readonly choices: readonly Choice[];
  /** True while the API is asked what has the id. */
  readonly isLooking: boolean;
}

/** Asks what has a whole id, and returns choices of what was found. */
const useChoicesOfId = (text: string): Choices => {
  const key = UUID.test(text) ? `palette id ${text}` : null;
  const { data, isLoading } = useFetched(key, (signal) => findById(client.http, text, signal));
  const choices = useMemo(() => (data ?? []).flatMap((kind) => CHOICES_OF_KIND[kind](text)), [data, text]);
  return { choices, isLooking: isLoading };
};

const MAX_SESSIONS = 100;

const fixedChoices = (): Choice[] => [
  ...NAVIGATION.map(({ to, icon, title }) => link(to, icon, title, 'page')),
  link('/agents?spawn=1', 'plus', 'Spawn an agent', 'action'),
  link('/workflows/new', 'plus', 'Draw a workflow', 'action'),
  link('/compare', 'fork', 'Compare two sessions', 'page'),
  { id: 'theme', icon: 'auto', title: 'Switch the theme', kind: 'action', run: nextTheme },
];

const useChoices = (text: string): Choices => {
  const wanted = text.trim().toLowerCase();
  const { choices: named, isLooking } = useChoicesOfId(wanted);
  const { data: agents } = useFetched('palette agents', () => client.http.listAgents());
  const { data: recent } = useFetched('palette sessions', () =>
    client.http.listSessions({ query: { limit: MAX_SESSIONS } }),
  );
  const choices = useMemo(() => {
    const known = [
      ...fixedChoices(),
      ...(agents?.agents ?? []).map(({ id, name }) =>
        link(`/agents/${encodeURIComponent(id)}`, 'agents', name === id ? id : `${name} (${id})`, 'agent'),
      ),
      ...(recent?.sessions ?? []).map(({ id, title, agentId }) =>
        link(`/sessions/${id}`, 'sessions', `${title?.slice(0, 80) ?? id} (${agentId})`, 'session'),
      ),
    ];
    const found = known.filter(({ id, title }) => `${title} ${id}`.toLowerCase().includes(wanted));
    const isNamed = new Set(named.map(({ id }) => id));
    const others = found.filter(({ id }) => !isNamed.has(id));
    return [...choicesOfPosition(wanted), ...named, ...others].slice(0, 50);
  }, [agents, recent, wanted, named]);
  return { choices, isLooking };
};

/** Finds a page, an agent, a session, a run or a position. */
export const Palette = ({ onClose }: { readonly onClose: () => void }) => {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [index, setIndex] = useState(0);
  const { choices, isLooking } = useChoices(text);
  const [isEntered, setEntered] = useState(false);
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  const selected = Math.min(index, choices.length - 1);
  const choose = (choice: Choice | undefined): void => {
    onClose();
    choice?.run();
  };
  // Enter before the API has answered opens what it finds.
  useEffect(() => {
    if (isEntered && choices.length > 0) choose(choices[0]);
  });
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && choices.length === 0) setEntered(isLooking);
    else if (event.key === 'Enter') choose(choices[selected]);
    else if (event.key === 'ArrowDown') setIndex(Math.min(selected + 1, choices.length - 1));
    else if (event.key === 'ArrowUp') setIndex(Math.max(selected - 1, 0));
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} className={css.palette} aria-label="Go to" onClose={onClose}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={selected < 0 ? undefined : `palette-${selected}`}
        aria-label="Page, agent, session, run or #position"
        placeholder="Page, agent, session, run or #position"
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setIndex(0);
          setEntered(false);
        }}
        onKeyDown={onKeyDown}
      />
      <ChoiceList choices={choices} selected={selected} choose={choose} />
      <p role="status" className={css.paletteNote}>
        {choices.length === 0 && (isLooking ? 'Looking for it …' : 'Nothing is found.')}
      </p>
    </dialog>
  );
};

interface ChoiceListProps {
  readonly choices: readonly Choice[];
  readonly selected: number;
  readonly choose: (choice: Choice) => void;
}

const ChoiceList = ({ choices, selected, choose }: ChoiceListProps) => {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.children[selected]?.scrollIntoView({ block: 'nearest' });
  }, [selected]);
  return (
    <div ref={list} id="palette-list" role="listbox" aria-label="Results" className={css.paletteList}>
      {choices.map((choice, index) => (
        <div
          key={choice.id}
          id={`palette-${index}`}
          role="option"
          aria-selected={index === selected}
          onClick={() => choose(choice)}
        >
          <Icon name={choice.icon} />
          {choice.title}
          <small>{choice.kind}</small>
        </div>
      ))}
    </div>
  );
};
