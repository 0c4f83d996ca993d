import { PageHead } from '../../app/page-head.js';
import { Link, setParams, useParam } from '../../app/router.js';
import { Empty, Panel } from '../../ui/ui.js';
import { SessionTable } from './session-table.js';
import css from '../pages.module.css';

export const SessionList = () => {
  const agent = useParam('agent');
  return (
    <>
      <PageHead title="Sessions" question="Which conversations are there, and which of them goes on?" />
      <div className={css.filters}>
        <label>
          Agent
          <input
            value={agent}
            placeholder="any"
            onChange={(event) => setParams({ agent: event.target.value })}
          />
        </label>
      </div>
      <Panel title="Newest first">
        <SessionTable
          {...(agent ? { agent } : {})}
          empty={
            <Empty title="No session yet">
              <p>A session begins with the first message to an agent.</p>
              <Link to="/agents">Choose an agent</Link>
            </Empty>
          }
        />
      </Panel>
    </>
  );
};
