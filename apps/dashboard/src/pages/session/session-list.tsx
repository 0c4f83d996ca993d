import { useMemo } from 'react';
import { PageHead } from '../../app/page-head.js';
import { Link, setFilters, useParam } from '../../data/router.js';
import { Empty, Panel } from '../../ui/ui.js';
import { TypedFilter } from '../../ui/typed-filter.js';
import { SessionTable, type SessionFilter } from './session-table.js';
import css from '../pages.module.css';

const STATES = { idle: 'idle', working: 'answers', waiting: 'waits for a decision' } as const;
type State = keyof typeof STATES;

const isState = (name: string): name is State => Object.hasOwn(STATES, name);

const HOUR_MS = 3_600_000;

/** Times of the last activity, by their names in the URL. */
const TIMES: Readonly<Record<string, readonly [string, number]>> = {
  hour: ['in the last hour', HOUR_MS],
  day: ['in 24 hours', 24 * HOUR_MS],
  week: ['in 7 days', 7 * 24 * HOUR_MS],
  month: ['in 30 days', 30 * 24 * HOUR_MS],
};

/** Returns when a time of the filter began; it stays until another one is chosen. */
const useSince = (time: string): string | null =>
  useMemo(() => {
    const [, ms] = TIMES[time] ?? [];
    return ms === undefined ? null : new Date(Date.now() - ms).toISOString();
  }, [time]);

const NoSession = ({ isFiltered }: { readonly isFiltered: boolean }) =>
  isFiltered ? (
    <Empty title="No session matches">
      <p>Clear a filter, or move the position bar.</p>
    </Empty>
  ) : (
    <Empty title="No session yet">
      <p>A session begins with the first message to an agent.</p>
      <Link to="/agents">Choose an agent</Link>
    </Empty>
  );

export const SessionList = () => {
  const agent = useParam('agent');
  const channel = useParam('channel');
  const text = useParam('text');
  const state = useParam('state');
  const name = useParam('q');
  const time = useParam('time');
  const since = useSince(time);
  const filter: SessionFilter = {
    ...(name && { q: name }),
    ...(since && { since }),
    ...(agent && { agentPart: agent }),
    ...(channel && { channel }),
    ...(text && { text }),
    ...(isState(state) && { state }),
  };
  return (
    <>
      <PageHead title="Sessions" question="Which conversations are there, and which of them are active?" />
      <div className={css.filters} role="search" aria-label="Filters">
        <TypedFilter name="q" label="Name" value={name} hint="words of the name" />
        <TypedFilter name="agent" label="Agent" value={agent} hint="part of the id" />
        <TypedFilter name="channel" label="Channel" value={channel} />
        <TypedFilter name="text" label="Key" value={text} hint="part of the key" />
        <label>
          State
          <select
            value={isState(state) ? state : ''}
            onChange={(event) => setFilters({ state: event.target.value })}
          >
            <option value="">any</option>
            {Object.entries(STATES).map(([name, word]) => (
              <option key={name} value={name}>
                {word}
              </option>
            ))}
          </select>
        </label>
        <label>
          Time
          <select
            value={Object.hasOwn(TIMES, time) ? time : ''}
            onChange={(event) => setFilters({ time: event.target.value })}
          >
            <option value="">any</option>
            {Object.entries(TIMES).map(([key, [word]]) => (
              <option key={key} value={key}>
                {word}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Panel title="Newest first">
        <SessionTable filter={filter} empty={<NoSession isFiltered={Object.keys(filter).length > 0} />} />
      </Panel>
    </>
  );
};
