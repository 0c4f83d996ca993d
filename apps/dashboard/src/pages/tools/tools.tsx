import type { RouteReply } from '@antiphon/client';
import { PageHead } from '../../app/page-head.js';
import { useIdentity } from '../../data/identity.js';
import { Link, setFilters, useParam, usePosition } from '../../data/router.js';
import { useRead } from '../../data/use-read.js';
import { CopyRecord } from '../../ui/copy-record.js';
import { countOf, formatNumber } from '../../ui/format.js';
import { TypedFilter } from '../../ui/typed-filter.js';
import { css as ui, Empty, Loading, numberColumn, Panel, ProblemBox, State, Table } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import pages from '../pages.module.css';
import {
  approvalOf,
  beginningOf,
  changesTools,
  Names,
  SOURCES,
  type Catalogue,
  type Tool,
} from './tool-texts.js';
import { ToolDetail } from './tool-detail.js';
import css from './tools.module.css';

const CallCells = ({ calls }: Pick<Tool, 'calls'>) => {
  if (calls === null) return <td colSpan={2}>not shown to you</td>;
  if (calls.count === 0)
    return (
      <td colSpan={2} data-end="">
        <span className={ui.muted}>never called</span>
      </td>
    );
  return (
    <>
      <td data-end="">{formatNumber(calls.count)}</td>
      <td data-end="">
        {calls.failures > 0 ? <State of="failed">{formatNumber(calls.failures)}</State> : 0}
      </td>
    </>
  );
};

const Row = ({ tool, isCurrent }: { readonly tool: Tool; readonly isCurrent: boolean }) => (
  <tr aria-current={isCurrent} data-tool={tool.name}>
    <td className={pages.contentCell}>
      <Link to={`/tools?tool=${tool.name}`} className={pages.name}>
        {tool.name}
      </Link>
      <div className={css.line}>
        <VisibleText text={beginningOf(tool.description)} />
      </div>
    </td>
    <td>{SOURCES[tool.source].short}</td>
    <td>
      <Names names={tool.capabilities} none="nothing" />
    </td>
    <td data-end="">{formatNumber(tool.agentCount)}</td>
    <td>{approvalOf(tool)}</td>
    <CallCells calls={tool.calls} />
  </tr>
);

const COLUMNS = [
  ...['Tool', 'Source', 'May reach', numberColumn('Agents'), 'Approval'],
  ...[numberColumn('Calls in 24 h'), numberColumn('Failed')],
];

const Tools = ({ tools, current }: { readonly tools: readonly Tool[]; readonly current: string }) =>
  tools.length === 0 ? (
    <Empty title="No tool is of these filters">
      <Link to="/tools">Show all tools</Link>
    </Empty>
  ) : (
    <Table label="Tools" columns={COLUMNS}>
      {tools.map((tool) => (
        <Row key={tool.name} tool={tool} isCurrent={tool.name === current} />
      ))}
    </Table>
  );

const Refused = ({ plugins }: { readonly plugins: NonNullable<Catalogue['plugins']> }) => (
  <Panel title={`${countOf(plugins.length, 'plug-in')} not loaded`}>
    <Table
      label="Plug-ins that are not loaded"
      columns={['Plug-in', 'State', 'Reason', 'Capabilities', 'Module']}
    >
      {plugins.map(({ name, kind, status, reason, capabilities, moduleDigest }) => (
        <tr key={`${name} ${reason}`}>
          <td className={pages.name}>
            {name} ({kind})
          </td>
          <td>
            <State of="failed">{status}</State>
          </td>
          <td className={pages.contentCell}>
            <VisibleText text={reason ?? ''} />
          </td>
          <td>
            <Names names={capabilities} none="none" />
          </td>
          <td className={css.digest}>{moduleDigest ?? 'not read'}</td>
        </tr>
      ))}
    </Table>
  </Panel>
);

const Unknown = ({ unknown }: Pick<Catalogue, 'unknown'>) => (
  <Panel title={`${countOf(unknown.length, 'name')} without a tool`} isPadded>
    <p>Agents name these tools, and none of this name exists. They work without them.</p>
    <dl className={ui.facts}>
      {unknown.map(({ name, agents }) => (
        <div key={name} className={css.pair}>
          <dt>
            <VisibleText text={name} />
          </dt>
          <dd>
            <Names names={agents} none="an agent" linkTo="/agents/" />
          </dd>
        </div>
      ))}
    </dl>
  </Panel>
);

interface Filters {
  readonly q: string;
  readonly source: string;
}

const isOf = ({ q, source }: Filters, tool: Tool): boolean =>
  (source === '' || tool.source === source) &&
  `${tool.name} ${tool.description}`.toLowerCase().includes(q.toLowerCase());

const FilterRow = ({ q, source }: Filters) => (
  <div className={pages.filters} role="search" aria-label="Filters of tools">
    <TypedFilter name="q" label="Text" value={q} />
    <label>
      Source
      <select value={source} onChange={(event) => setFilters({ source: event.target.value })}>
        <option value="">any</option>
        <option value="native">native</option>
        <option value="plugin">plug-in</option>
      </select>
    </label>
  </div>
);

/** Says which parts of the page are of another time, or are missing. */
const Notes = ({ data }: { readonly data: RouteReply<'listTools'> }) => {
  const at = usePosition();
  return (
    <>
      {at !== null && (
        <p className={css.note}>
          Agents and calls are those of event {formatNumber(at)}. Descriptions, modules, limits, approval
          rules and plug-ins are current: no event records them.
        </p>
      )}
      {!data.hasPlugins && (
        <p className={css.note} role="status">
          <State of="down">The sandbox does not respond</State> Tools of plug-ins are missing here.
        </p>
      )}
      {data.isCountPartial && (
        <p className={css.note}>There are more calls than are counted: the figures are of the newest ones.</p>
      )}
    </>
  );
};

const Content = () => {
  const filters = { q: useParam('q'), source: useParam('source') };
  const chosen = useParam('tool');
  const { data, problem, refresh } = useRead('listTools', {}, { changesOn: changesTools });
  if (problem && !data) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="tools" />;
  const shown = data.tools.filter((tool) => isOf(filters, tool));
  const tool = data.tools.find(({ name }) => name === chosen);
  return (
    <div className={pages.stack}>
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      <Notes data={data} />
      <FilterRow {...filters} />
      {chosen !== '' && !tool && <Empty title={`There is no tool ${chosen}`} />}
      {tool && <ToolDetail tool={tool} />}
      <Panel title={countOf(shown.length, 'tool')}>
        <Tools tools={shown} current={chosen} />
      </Panel>
      {data.unknown.length > 0 && <Unknown unknown={data.unknown} />}
      {data.plugins !== null && data.plugins.length > 0 && <Refused plugins={data.plugins} />}
    </div>
  );
};

/** The catalogue of tools. Nothing runs from here. */
export const ToolsPage = () => {
  const { permissions, role } = useIdentity();
  const mayRead = permissions?.includes('plugins:read') ?? null;
  return (
    <>
      <PageHead
        title="Tools"
        question="What can an agent call, and who may?"
        actions={mayRead === true && <CopyRecord noun="tools" json="/tools" command="antiphon tool list" />}
      />
      {mayRead === null && <Loading what="your permissions" />}
      {mayRead === true && <Content />}
      {mayRead === false && (
        <Empty title={`Your role ${role} lacks plugins:read`}>
          <p>Sign in with a key that has this right to see the tools.</p>
        </Empty>
      )}
    </>
  );
};
