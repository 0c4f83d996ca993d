import type { RouteReply } from '@antiphon/client';
import { useState } from 'react';
import { Link, setFilters, useParam } from '../../data/router.js';
import { isAbout } from '../../data/event-pages.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { download, printCsv } from '../../ui/download.js';
import { formatNumber, formatUsd } from '../../ui/format.js';
import { Button, css as ui, Empty, Loading, Panel, ProblemBox, Table, numberColumn } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import css from '../pages.module.css';
import { BudgetDialog } from './budget-dialog.js';
import { percent } from './meter.js';

type Cost = RouteReply<'readUsage'>['total'];

/** Groups of the usage, as the API names them. */
const GROUPS = {
  agent: { column: 'Agent', what: 'agent' },
  model: { column: 'Model', what: 'model' },
  key: { column: 'Caller', what: 'key' },
  day: { column: 'Day (UTC)', what: 'day' },
} as const;
type Group = keyof typeof GROUPS;

interface CostRowProps {
  readonly name: string;
  readonly cost: Cost;
  readonly share: number;
  readonly group: Group;
  readonly onSet: (agentId: string) => void;
}

interface NoteProps {
  readonly amount: number | undefined;
  readonly format: (amount: number) => string;
  readonly text: string;
}

/** Shows a part of an amount, if there is one. */
const Note = ({ amount = 0, format, text }: NoteProps) =>
  amount > 0 && <div className={ui.muted}>{`${format(amount)} ${text}`}</div>;

const CostCells = ({ cost }: { readonly cost: Cost }) => (
  <>
    <td data-end="">{formatNumber(cost.calls)}</td>
    <td data-end="">
      {formatNumber(cost.settledTokens)}
      <Note amount={cost.cacheReadTokens} format={formatNumber} text="read from a cache" />
      <Note amount={cost.estimatedTokens} format={formatNumber} text="estimated" />
    </td>
    <td data-end="">{formatNumber(cost.reservedTokens)}</td>
    <td data-end="">
      {formatUsd(cost.settledMicroUsd)}
      <Note amount={cost.estimatedMicroUsd} format={formatUsd} text="estimated" />
    </td>
  </>
);

const CostRow = ({ name, cost, share, group, onSet }: CostRowProps) => (
  <tr>
    <td>
      {group === 'agent' ? (
        <Link to={`/agents/${encodeURIComponent(name)}`} className={css.name}>
          {name}
        </Link>
      ) : (
        <span className={css.name}>
          <VisibleText text={name} />
        </span>
      )}
    </td>
    <CostCells cost={cost} />
    <td className={css.barCell}>
      {Math.round(share)} %
      <div className={css.bar} style={{ width: `${share}%` }} />
    </td>
    {group === 'agent' && (
      <td data-end="">
        <ActButton permission="budgets:write" onClick={() => onSet(name)}>
          Set budget
        </ActButton>
      </td>
    )}
  </tr>
);

const COST_COLUMNS = [
  numberColumn('Calls'),
  numberColumn('Tokens'),
  numberColumn('Reserved tokens'),
  numberColumn('Cost'),
  'Share of the cost',
];

/** Share of the cost; of the tokens where all calls are free. */
const shareOf = (cost: Cost, total: Cost): number =>
  total.settledMicroUsd > 0
    ? percent(cost.settledMicroUsd, total.settledMicroUsd)
    : percent(cost.settledTokens, Math.max(1, total.settledTokens));

interface Row extends Cost {
  readonly name: string;
}

const CSV_COLUMNS = [
  'calls',
  'settledTokens',
  'reservedTokens',
  'settledMicroUsd',
  'reservedMicroUsd',
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'estimatedTokens',
  'estimatedMicroUsd',
] as const;

const saveUsage = (group: Group, rows: readonly Row[]): void => {
  const cells = rows.map((row) => [row.name, ...CSV_COLUMNS.map((column) => row[column] ?? 0)]);
  download(printCsv([group, ...CSV_COLUMNS], cells), `usage-by-${group}.csv`, 'text/csv');
};

const UsageTable = ({ group }: { readonly group: Group }) => {
  const [agentId, setAgentId] = useState<string | null>(null);
  const { data, problem, refresh } = useRead(
    'readUsage',
    { query: { by: group } },
    { changesOn: isAbout('budget', 'session') },
  );
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="usage" />;
  const agents = data.agents.map(({ agentId: name, ...cost }) => ({ name, ...cost }));
  const rows = data.groups ?? agents;
  if (rows.length === 0)
    return (
      <Empty title="No model call has been made yet">
        <p>Send a message to an agent, and its cost appears here.</p>
      </Empty>
    );
  const { column, what } = GROUPS[group];
  const change = group === 'agent' ? [numberColumn('Change')] : [];
  return (
    <>
      <Table label={`Usage by ${what}`} columns={[column, ...COST_COLUMNS, ...change]}>
        {rows.map(({ name, ...cost }) => (
          <CostRow
            key={name}
            {...{ name, cost, group }}
            share={shareOf(cost, data.total)}
            onSet={setAgentId}
          />
        ))}
        <tr>
          <td className={css.name}>Sum</td>
          <CostCells cost={data.total} />
          <td colSpan={1 + change.length} />
        </tr>
      </Table>
      <p className={css.pad}>
        <Button onClick={() => saveUsage(group, rows)}>Save as CSV</Button>
      </p>
      {agentId !== null && (
        <BudgetDialog target={{ kind: 'agent', agentId }} onClose={() => setAgentId(null)} onSet={refresh} />
      )}
    </>
  );
};

/** Shows the cost of model calls by agent, model, caller or day. */
export const Usage = () => {
  const wanted = useParam('by');
  const group: Group = wanted in GROUPS ? (wanted as Group) : 'agent';
  return (
    <Panel
      title="Usage"
      actions={
        <select
          aria-label="Sum by"
          value={group}
          onChange={(event) => setFilters({ by: event.target.value })}
        >
          {Object.entries(GROUPS).map(([name, { what }]) => (
            <option key={name} value={name}>{`by ${what}`}</option>
          ))}
        </select>
      }
    >
      <UsageTable group={group} />
    </Panel>
  );
};
