import { useLayoutEffect, useRef, useState, type RefObject } from 'react';
import { useLiveAgents } from '../../data/agent-live.js';
import { isAbout } from '../../data/event-pages.js';
import { useRead } from '../../data/use-read.js';
import { AgentCard, type Agent } from './agent-card.js';
import css from './agent-card.module.css';

/** Cards of one section. Each possible number of columns divides it. */
const SECTION = 12;
const COLUMNS = [6, 4, 3, 2, 1] as const;
/** Least width of a card, px, and the time that its lines show. */
const LEAST_WIDTH = 268;
const MINUTES = 30;
/** Distance from the view within which a section is drawn. */
const MARGIN = '300px';

/** Follows the number of columns that a box has room for. */
const useColumns = (box: RefObject<HTMLElement | null>): number => {
  const [columns, setColumns] = useState(1);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = (): void => {
      const room = Math.floor(element.clientWidth / LEAST_WIDTH);
      setColumns(COLUMNS.find((count) => count <= room) ?? 1);
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, [box]);
  return columns;
};

/** Tells whether a box is in view, or close to it. */
const useIsNear = (box: RefObject<HTMLElement | null>, isFirst: boolean): boolean => {
  const [isNear, setNear] = useState(isFirst);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new IntersectionObserver((entries) => setNear(entries.at(-1)?.isIntersecting ?? false), {
      rootMargin: MARGIN,
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [box]);
  return isNear;
};

const NO_TITLES: ReadonlyMap<string, string> = new Map();

/** Reads the titles of the tasks that agents work on, if one does. */
const useTitles = (agents: readonly Agent[]): ReadonlyMap<string, string> => {
  const hasTask = agents.some(({ current }) => current?.taskId);
  const hasChat = agents.some(({ current }) => current && !current.taskId);
  const tasks = useRead(
    'listTasks',
    { query: { state: 'running', limit: 100 } },
    { changesOn: isAbout('task'), isOff: !hasTask },
  );
  const sessions = useRead('listSessions', { query: { limit: 50 } }, { isOff: !hasChat });
  if (!tasks.data && !sessions.data) return NO_TITLES;
  return new Map([
    ...(tasks.data?.tasks ?? []).map(({ id, title }) => [id, title] as const),
    ...(sessions.data?.sessions ?? []).flatMap(({ id, title }) =>
      title === null ? [] : [[id, title] as const],
    ),
  ]);
};

interface CardsProps {
  readonly agents: readonly Agent[];
  /** Number of agents before these, and of all agents. */
  readonly before: number;
  readonly size: number;
}

/** The cards of a section, with one read for the metrics of all of them. */
const Cards = ({ agents, before, size }: CardsProps) => {
  // In the order of the ids, so that another order of the cards is not read again.
  const ids = agents.map(({ id }) => id).toSorted();
  const { data } = useRead('listAgentMetrics', {
    query: { agents: ids.join(','), minutes: MINUTES },
  });
  const titles = useTitles(agents);
  const metrics = new Map(data?.agents.map((one) => [one.agentId, one]));
  return agents.map((agent, index) => (
    <AgentCard
      key={agent.id}
      agent={agent}
      metrics={data && (metrics.get(agent.id) ?? NO_METRICS(agent.id))}
      titles={titles}
      place={before + index + 1}
      size={size}
    />
  ));
};
const NO_METRICS = (agentId: string) => ({ agentId, latest: null, recent: [], today: null });

interface SectionProps extends CardsProps {
  readonly columns: number;
}

/** A section that is out of view keeps its place, and neither draws nor reads its agents. */
const Section = ({ columns, ...cards }: SectionProps) => {
  const box = useRef<HTMLDivElement>(null);
  const isNear = useIsNear(box, cards.before === 0);
  const rows = Math.ceil(cards.agents.length / columns);
  return (
    <div
      ref={box}
      role="presentation"
      className={css.section}
      style={{
        gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))`,
        gridTemplateRows: `repeat(${rows}, minmax(14.5rem, auto))`,
      }}
    >
      {isNear && <Cards {...cards} />}
    </div>
  );
};

interface AgentGridProps {
  readonly agents: readonly Agent[];
  readonly label: string;
  /** Number of cards that are drawn and read together. Default: 12. */
  readonly section?: number;
}

/** Agents as cards. Only those in view are drawn, and only their metrics are read. */
export const AgentGrid = ({ agents, label, section = SECTION }: AgentGridProps) => {
  useLiveAgents();
  const box = useRef<HTMLDivElement>(null);
  const columns = useColumns(box);
  const starts = Array.from({ length: Math.ceil(agents.length / section) }, (_, nth) => nth * section);
  return (
    <div ref={box} role="list" aria-label={label} className={css.sections}>
      {starts.map((start) => (
        <Section
          key={start}
          agents={agents.slice(start, start + section)}
          before={start}
          size={agents.length}
          columns={columns}
        />
      ))}
    </div>
  );
};
