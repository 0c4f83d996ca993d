import type { RouteReply } from '@antiphon/client';
import { useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import { isAbout } from '../../data/event-pages.js';
import { useRead } from '../../data/use-read.js';
import { CopyRecord } from '../../ui/copy-record.js';
import { formatCompact, formatNumber, formatUsd } from '../../ui/format.js';
import { ActButton } from '../../ui/act-button.js';
import { css as ui, Loading, Panel, ProblemBox, State, Table } from '../../ui/ui.js';
import css from '../pages.module.css';
import { BudgetDialog, type BudgetTarget, type Scope } from './budget-dialog.js';
import { Meter } from './meter.js';
import { Usage } from './usage.js';

const NAMES: Readonly<Record<string, string>> = {
  day: 'Day',
  month: 'Month',
  agent: 'Agent',
  session: 'Session',
};

interface ScopeRowProps {
  readonly scope: Scope;
  readonly onSet: (scope: Scope) => void;
}

const ScopeRow = ({ scope, onSet }: ScopeRowProps) => (
  <tr>
    <td>
      <span className={css.name}>{NAMES[scope.kind] ?? scope.kind}</span>
      <div className={ui.mono}>{scope.key.slice(scope.key.indexOf('/') + 1)}</div>
      {scope.limitFrom === 'run_time' && <div className={ui.muted}>set at run time</div>}
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
    <td data-end="">
      <ActButton permission="budgets:write" onClick={() => onSet(scope)}>
        {scope.kind === 'agent' ? 'Set budget' : `Set limit of each ${scope.kind}`}
      </ActButton>
    </td>
  </tr>
);

type Limits = NonNullable<RouteReply<'readBudgets'>['eachSession']>;

const limitText = (limits: Limits | undefined): string => {
  const { limitMicroUsd = null, limitTokens = null, limitFrom } = limits ?? {};
  const money = limitMicroUsd === null ? [] : [formatUsd(limitMicroUsd)];
  const tokens = limitTokens === null ? [] : [`${formatNumber(limitTokens)} tokens`];
  const amounts = [...money, ...tokens];
  const origin = limitFrom === 'run_time' ? ', set at run time' : '';
  return (amounts.length === 0 ? 'no limit' : `at most ${amounts.join(' and ')}`) + origin;
};

const Budgets = () => {
  const [chosen, setChosen] = useState<BudgetTarget | null>(null);
  const { data, problem, refresh } = useRead(
    'readBudgets',
    { query: { agents: 'true' } },
    { changesOn: isAbout('budget', 'session', 'agent') },
  );
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="budgets" />;
  const choose = (scope: Scope): void => {
    if (scope.kind === 'day' || scope.kind === 'month') setChosen({ kind: scope.kind });
    if (scope.kind === 'agent') setChosen({ kind: 'agent', agentId: scope.key.slice('agent/'.length) });
  };
  return (
    <>
      <Table
        label="Budgets"
        columns={['Budget', 'US dollars', 'Tokens', 'State', { name: 'Change', isNumber: true }]}
      >
        {data.scopes.map((scope) => (
          <ScopeRow key={scope.key} scope={scope} onSet={choose} />
        ))}
        <tr>
          <td className={css.name}>Each session</td>
          <td colSpan={3} className={ui.muted}>
            {limitText(data.eachSession)}
          </td>
          <td data-end="">
            <ActButton permission="budgets:write" onClick={() => setChosen({ kind: 'session' })}>
              Set limit of each session
            </ActButton>
          </td>
        </tr>
      </Table>
      {chosen && <BudgetDialog target={chosen} onClose={() => setChosen(null)} onSet={refresh} />}
    </>
  );
};

export const Money = () => (
  <>
    <PageHead
      title="Money"
      question="Who spends what, against which limit, and what is reserved?"
      actions={<CopyRecord noun="budgets" json="/budgets" command="antiphon budget show" />}
    />
    <div className={css.stack}>
      <Panel title="Budgets of the workspace">
        <Budgets />
      </Panel>
      <Usage />
    </div>
  </>
);
