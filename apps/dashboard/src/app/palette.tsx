import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import { offeredText } from '../data/drafts.js';
import { findById, type Kind } from '../data/find-id.js';
import { client } from '../data/gateway.js';
import { useIdentity } from '../data/identity.js';
import { navigate } from '../data/router.js';
import { useFetched, type Problem, type Read } from '../data/use-read.js';
import { Icon } from '../ui/icon.js';
import { head } from '../data/live-log.js';
import { parseTime } from '../data/parse-time.js';
import { formatDate } from '../ui/format.js';
import { link, type Choice } from './choices.js';
import { useFoundTexts } from './found-texts.js';
import { NAVIGATION, type FindPage } from './pages.js';
import { goToPosition } from './position-bar.js';
import { nextTheme } from './theme.js';
import css from './shell.module.css';

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

/** Moves every view to the last event up to a time. */
const goToTime = async (time: Date): Promise<void> => {
  const query = { until: time.toISOString(), order: 'desc', limit: 1 } as const;
  const [event] = (await client.http.readEvents({ query })).events;
  goToPosition(event?.position ?? (time.getTime() > Date.now() ? (head.get() ?? 1) : 1));
};

/** Returns the choice of a time such as `@2026-11-25 14:00`. */
const choicesOfTime = (text: string): Choice[] => {
  const time = text.startsWith('@') ? parseTime(text.slice(1), new Date()) : null;
  if (time === null) return [];
  const title = `Show everything as of ${formatDate(time.toISOString())}`;
  return [{ id: 'time', icon: 'clock', title, kind: 'time', run: () => void goToTime(time) }];
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
  /** True while the API is asked. */
  readonly isLooking: boolean;
  /** Says why the API cannot tell what there is; null if it has told. */
  readonly problem: Problem | null;
}

/** Returns why a read failed. What the caller may not read is nothing to find. */
const failureOf = (...reads: readonly Read<unknown>[]): Problem | null =>
  reads.map(({ problem }) => problem).find((problem) => problem !== null && problem.status !== 403) ?? null;

/** Asks what has a whole id, and returns choices of what was found. */
const useChoicesOfId = (text: string): Choices => {
  const key = UUID.test(text) ? `palette id ${text}` : null;
  const read = useFetched(key, (signal) => findById(client.http, text, signal));
  const { data, isLoading } = read;
  const choices = useMemo(() => (data ?? []).flatMap((kind) => CHOICES_OF_KIND[kind](text)), [data, text]);
  return { choices, isLooking: isLoading, problem: failureOf(read) };
};

const MAX_SESSIONS = 100;
/** Number of choices that are known without the API. */
const MAX_NAMED = 30;

const fixedChoices = (): Choice[] => [
  ...NAVIGATION.map(({ to, icon, title }) => link(to, icon, title, 'page')),
  link('/chats/new', 'plus', 'New chat', 'action'),
  link('/settings/providers', 'settings', 'Providers and their keys', 'page'),
  link('/settings/providers?connect=1', 'plus', 'Connect a model: a provider and its key', 'action'),
  link('/agents?spawn=1', 'plus', 'Spawn an agent', 'action'),
  link('/workflows/new', 'plus', 'Draw a workflow', 'action'),
  link('/compare', 'fork', 'Compare two sessions', 'page'),
  { id: 'theme', icon: 'auto', title: 'Switch the theme', kind: 'action', run: nextTheme },
];

/** Tells whether a text is words: an id, a position and a time are none. */
const isWords = (text: string): boolean =>
  text.trim() !== '' && !UUID.test(text.trim()) && !/^[#@]/.test(text.trim());

const useChoices = (text: string, findPage: FindPage): Choices => {
  const wanted = text.trim().toLowerCase();
  const found = useFoundTexts(isWords(text) ? text.trim() : '', findPage);
  const { choices: named, ...byId } = useChoicesOfId(wanted);
  const agents = useFetched('palette agents', () => client.http.listAgents());
  const { permissions } = useIdentity();
  const mayRead = permissions?.includes('plugins:read') ?? false;
  const tools = useFetched(mayRead ? 'palette tools' : null, () => client.http.listTools());
  const recent = useFetched('palette sessions', () =>
    client.http.listSessions({ query: { limit: MAX_SESSIONS } }),
  );
  const choices = useMemo(() => {
    const known = [
      ...fixedChoices(),
      ...(agents.data?.agents ?? []).map(({ id, name }) =>
        link(`/agents/${encodeURIComponent(id)}`, 'agents', name === id ? id : `${name} (${id})`, 'agent'),
      ),
      ...(tools.data?.tools ?? []).map(({ name, description }) =>
        link(`/tools?tool=${name}`, 'tools', name, 'tool', description.slice(0, 80)),
      ),
      ...(recent.data?.sessions ?? []).map(({ id, title, agentId }) =>
        link(`/sessions/${id}`, 'sessions', `${title?.slice(0, 80) ?? id} (${agentId})`, 'session'),
      ),
    ];
    const matching = known.filter(({ id, title }) => `${title} ${id}`.toLowerCase().includes(wanted));
    const isNamed = new Set(named.map(({ id }) => id));
    const others = matching.filter(({ id }) => !isNamed.has(id)).slice(0, MAX_NAMED);
    const isListed = new Set(others.map(({ id }) => id));
    const texts = found.choices.filter(({ id }) => !isNamed.has(id) && !isListed.has(id));
    return [...choicesOfTime(text.trim()), ...choicesOfPosition(wanted), ...named, ...others, ...texts];
  }, [agents.data, tools.data, recent.data, text, wanted, named, found.choices]);
  const isLooking = byId.isLooking || agents.isLoading || recent.isLoading || found.isLooking;
  return { choices, isLooking, problem: byId.problem ?? failureOf(agents, recent, found.read) };
};

/** Returns the choice of a new chat whose message begins with a text that is found nowhere. */
const choiceOfText = (text: string): Choice => ({
  ...{ id: 'chat of text', icon: 'plus', title: 'Start a chat with this text', kind: 'action' },
  run: () => {
    offeredText.set(text);
    navigate('/chats/new');
  },
});

/** Returns the choices to show: where nothing is found, a chat with the text. */
const useOffered = ({ choices, isLooking, problem }: Choices, text: string): readonly Choice[] => {
  const { permissions } = useIdentity();
  const mayWrite = permissions?.includes('sessions:write') ?? false;
  const isOffered = choices.length === 0 && !isLooking && problem === null && isWords(text) && mayWrite;
  return useMemo(() => (isOffered ? [choiceOfText(text.trim())] : choices), [isOffered, choices, text]);
};

/** Returns what the list of results does not say. */
const noteOf = ({ choices, isLooking, problem }: Choices): string => {
  if (problem !== null)
    return choices.length > 0
      ? `Not everything was looked up: ${problem.message}.`
      : `The look-up failed: ${problem.message}. Close this and try again.`;
  if (choices.length > 0) return '';
  return isLooking ? 'Looking for it …' : 'Nothing is found.';
};

interface PaletteProps {
  readonly findPage: FindPage;
  readonly onClose: () => void;
}

/** Finds a page, an agent, a text, a file, a task, an id, a time or a position. */
export const Palette = ({ findPage, onClose }: PaletteProps) => {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [index, setIndex] = useState(0);
  const found = useChoices(text, findPage);
  const { isLooking } = found;
  const choices = useOffered(found, text);
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
    if (isEntered && !isLooking && found.choices.length > 0) choose(found.choices[0]);
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
        aria-label="Page, agent, text, file, task, id, #position or @time"
        placeholder="Page, agent, text, file, task, id, #position or @time"
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
        {noteOf(found)}
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
          <span className={css.paletteText}>
            <bdi>{choice.title}</bdi>
            {choice.reason && <bdi className={css.paletteReason}>{choice.reason}</bdi>}
          </span>
          <small>{choice.kind}</small>
        </div>
      ))}
    </div>
  );
};
