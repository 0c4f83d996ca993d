import type { RouteReply } from '@antiphon/client';
import { PageHead } from '../app/page-head.js';
import { Link } from '../app/router.js';
import { isAbout } from '../data/event-pages.js';
import { useRead } from '../data/use-read.js';
import { formatCompact, formatNumber, formatUsd } from '../ui/format.js';
import { css as ui, Empty, Loading, Panel, ProblemBox, State, Table } from '../ui/ui.js';
import css from './pages.module.css';

type Scope = RouteReply<'readBudgets'>['scopes'][number];
type Usage = RouteReply<'readUsage'>['agents'][number];

interface MeterProps {
  readonly label: string;
  readonly settled: number;
  readonly reserved: number;
  readonly limit: number | null;
  readonly format: (value: number) => string;
}

const percent = (part: number, whole: number): number =>
  whole === 0 ? 100 : Math.min(100, (part / whole) * 100);

/** Spent and reserved parts of a limit, in words and as a bar. */
const Meter = ({ label, settled, reserved, limit, format }: MeterProps) => {
  const spent = limit === null ? 0 : percent(settled, limit);
  const bound = limit === null ? 0 : percent(reserved, limit);
  return (
    <div className={css.meterRow}>
      <div className={css.meterText}>
        <strong>{format(settled)}</strong>
        <span className={ui.muted}>
          {limit === null ? 'no limit' : `of ${format(limit)}`}
          {reserved > 0 && `, ${format(reserved)} reserved`}
        </span>
      </div>
      {limit !== null && (
        <div
          className={css.meter}
          role="meter"
          aria-label={label}
          aria-valuemin={0}
          aria-valuemax={limit}
          aria-valuenow={Math.min(settled, limit)}
          aria-valuetext={`${format(settled)} of ${format(limit)}`}
          data-full={settled + reserved >= limit ? '' : undefined}
        >
          <i style={{ width: `${spent}%` }} />
          <i data-part="reserved" style={{ left: `${spent}%`, width: `${Math.min(bound, 100 - spent)}%` }} />
        </div>
      )}
    </div>
  );
};

const NAMES: Readonly<Record<string, string>> = {
  day: 'Day',
  month: 'Month',
  agent: 'Agent',
  session: 'Session',
};

const ScopeRow = ({ scope }: { readonly scope: Scope }) => (
  <tr>
    <td>
      <span className={css.name}>{NAMES[scope.kind] ?? scope.kind}</span>
      <div className={ui.mono}>{scope.key}</div>
    </td>
    <td>
      <Meter
        label={`US dollars of ${scope.key}`}
        settled={scope.settledMicroUsd}
        reserved={scope.reservedMicroUsd}
        limit={scope.limitMicroUsd}
        format={formatUsd}
      />
    </td>
    <td>
      <Meter
        label={`Tokens of ${scope.key}`}
        settled={scope.settledTokens}
        reserved={scope.reservedTokens}
        limit={scope.limitTokens}
        format={formatCompact}
      />
    </td>
    <td>{scope.frozen ? <State of="frozen" /> : <State of="ok">admits calls</State>}</td>
  </tr>
);

const Budgets = () => {
  const { data, problem, refresh } = useRead(
    'readBudgets',
    {},
    { changesOn: isAbout('budget', 'session', 'agent') },
  );
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="budgets" />;
  return (
    <Table label="Budgets" columns={['Budget', 'US dollars', 'Tokens', 'State']}>
      {data.scopes.map((scope) => (
        <ScopeRow key={scope.key} scope={scope} />
      ))}
    </Table>
  );
};

const UsageRow = ({ usage, most }: { readonly usage: Usage; readonly most: number }) => (
  <tr>
    <td>
      <Link to={`/agents/${encodeURIComponent(usage.agentId)}`} className={css.name}>
        {usage.agentId}
      </Link>
    </td>
    <td data-end="">{formatNumber(usage.calls)}</td>
    <td data-end="">{formatNumber(usage.settledTokens)}</td>
    <td data-end="">{formatNumber(usage.reservedTokens)}</td>
    <td data-end="">{formatUsd(usage.settledMicroUsd)}</td>
    <td className={css.barCell}>
      <div className={css.bar} style={{ width: `${percent(usage.settledMicroUsd, Math.max(1, most))}%` }} />
    </td>
  </tr>
);

const number = (name: string) => ({ name, isNumber: true });

const UsageTable = () => {
  const { data, problem, refresh } = useRead('readUsage', {}, { changesOn: isAbout('budget', 'session') });
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="usage" />;
  if (data.agents.length === 0) return <Empty title="No model call has been made yet" />;
  const most = data.agents[0]?.settledMicroUsd ?? 0;
  return (
    <Table
      label="Usage by agent"
      columns={['Agent', number('Calls'), number('Tokens'), number('Reserved'), number('Cost'), 'Share']}
    >
      {data.agents.map((usage) => (
        <UsageRow key={usage.agentId} usage={usage} most={most} />
      ))}
      <tr>
        <td className={css.name}>All agents</td>
        <td data-end="">{formatNumber(data.total.calls)}</td>
        <td data-end="">{formatNumber(data.total.settledTokens)}</td>
        <td data-end="">{formatNumber(data.total.reservedTokens)}</td>
        <td data-end="">{formatUsd(data.total.settledMicroUsd)}</td>
        <td />
      </tr>
    </Table>
  );
};

export const Money = () => (
  <>
    <PageHead title="Money" question="Who spends what, against which limit, and what is reserved?" />
    <div className={css.stack}>
      <Panel title="Budgets of the workspace">
        <Budgets />
      </Panel>
      <Panel title="Usage by agent, most expensive first">
        <UsageTable />
      </Panel>
    </div>
  </>
);
