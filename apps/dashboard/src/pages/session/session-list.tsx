import { PageHead } from '../../app/page-head.js';
import { Link, setFilters, useParam } from '../../data/router.js';
import { Empty, Panel } from '../../ui/ui.js';
import { TypedFilter } from '../../ui/typed-filter.js';
import { SessionTable, type SessionFilter } from './session-table.js';
import css from '../pages.module.css';

const STATES = { idle: 'idle', working: 'answers', waiting: 'waits for a decision' } as const;
type State = keyof typeof STATES;

const isState = (name: string): name is State => Object.hasOwn(STATES, name);

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
  const filter: SessionFilter = {
    ...(agent && { agent }),
    ...(channel && { channel }),
    ...(text && { text }),
    ...(isState(state) && { state }),
  };
  return (
    <>
      <PageHead title="Sessions" question="Which conversations are there, and which of them are active?" />
      <div className={css.filters} role="search" aria-label="Filters">
        <TypedFilter name="agent" label="Agent" value={agent} />
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
      </div>
      <Panel title="Newest first">
        <SessionTable filter={filter} empty={<NoSession isFiltered={Object.keys(filter).length > 0} />} />
      </Panel>
    </>
  );
};
