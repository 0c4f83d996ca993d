import type pg from 'pg';
import { scopeName, violation } from '@antiphon/audit-domain';
import type { BudgetBook, Finding, ScopeBook } from '@antiphon/audit-domain';
import { type CheckReport, nowhere, Tally } from '../audit-report.js';
import { readRows } from '../read-log/read-log.js';

interface BalanceRow {
  readonly workspace: string;
  readonly scope_key: string;
  readonly reserved_tokens: string;
  readonly settled_tokens: string;
  readonly reserved_micro_usd: string;
  readonly settled_micro_usd: string;
  readonly frozen_by: string | null;
  readonly open_tokens: string;
  readonly open_micro_usd: string;
}

/** Selects each balance with the sum of its open reservations. */
const BALANCES_SQL = `select b.*, coalesce(o.tokens, 0) as open_tokens, coalesce(o.micro_usd, 0) as open_micro_usd
  from budget_balances b left join (
    select r.workspace, k.key, sum((r.reserved->>'tokens')::bigint) as tokens, sum((r.reserved->>'microUsd')::bigint) as micro_usd
    from budget_reservations r, unnest(r.scope_keys) as k (key) where r.open_until is not null group by r.workspace, k.key
  ) o on o.workspace = b.workspace and o.key = b.scope_key`;

const toBook = (row: BalanceRow): ScopeBook => ({
  reservedTokens: Number(row.reserved_tokens),
  settledTokens: Number(row.settled_tokens),
  reservedMicroUsd: Number(row.reserved_micro_usd),
  settledMicroUsd: Number(row.settled_micro_usd),
  frozenBy: row.frozen_by,
});

const FIELDS = [
  'reservedTokens',
  'settledTokens',
  'reservedMicroUsd',
  'settledMicroUsd',
  'frozenBy',
] as const;

const listDifferences = (row: ScopeBook, log: ScopeBook): string[] =>
  FIELDS.filter((field) => row[field] !== log[field]).map(
    (field) => `${field} ${row[field]}, the log ${log[field]}`,
  );

const compareRow = (row: BalanceRow, book: BudgetBook): Finding[] => {
  const { workspace, scope_key: key } = row;
  const differences = listDifferences(toBook(row), book.scope(workspace, key));
  const isOpenEqual =
    row.open_tokens === row.reserved_tokens && row.open_micro_usd === row.reserved_micro_usd;
  if (!isOpenEqual)
    differences.push(`open reservations hold ${row.open_tokens} tokens, the balance ${row.reserved_tokens}`);
  return differences.map((text) => violation(nowhere(workspace), `the balance of ${key} says ${text}`));
};

const isEmpty = (book: ScopeBook): boolean =>
  FIELDS.every((field) => book[field] === 0 || book[field] === null);

const balancesEqualTheLog = {
  name: 'balances-equal-the-log',
  about:
    'every budget balance is the sum of its budget events, and it holds the sum of its open reservations',
  counts: 'balances',
};

/** Compares metering's balances, row by row, with the audit's own fold of the budget events. */
export const compareBalances = async (
  client: pg.ClientBase,
  book: BudgetBook,
  strict: boolean,
): Promise<CheckReport> => {
  const tally = new Tally(balancesEqualTheLog, strict);
  const seen = new Set<string>();
  for await (const row of readRows<BalanceRow>(client, 'audit_balances', BALANCES_SQL)) {
    seen.add(scopeName(row.workspace, row.scope_key));
    tally.count(1);
    tally.add(compareRow(row, book));
  }
  for (const [name, scope] of book.scopes())
    if (!seen.has(name) && !isEmpty(scope))
      tally.add([violation(nowhere(name.slice(0, name.indexOf(' '))), `there is no balance for ${name}`)]);
  return tally.report();
};
