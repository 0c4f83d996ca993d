import { upcast } from '@antiphon/contracts/events';
import { BudgetEvent, BudgetLimitEvent } from '@antiphon/contracts/metering';
import { inTransaction } from '@antiphon/database';
import { createLogReader } from '@antiphon/event-store';
import type { RecordedEvent } from '@antiphon/event-store';
import { ledgerFrom } from '@antiphon/metering-domain';
import type { BalanceChange, Ledger } from '@antiphon/metering-domain';
import type pg from 'pg';
import { WRITE_LIMIT_SQL } from './budget-limit-store.js';
import { lockLedger } from '../ledger/ledger-rows.js';
import type { ReservationName, ScopeName } from '../ledger/ledger-rows.js';
import { writeLedger } from '../ledger/ledger-sql.js';

interface Fact {
  readonly workspace: string;
  readonly event: BudgetEvent;
}

const PAGE = 1_000;

const namesOf = (facts: readonly Fact[]): ReservationName[] => [
  ...new Map(
    facts.map(({ workspace, event }) => {
      const id = event.data.reservationId;
      return [`${workspace} ${id}`, { workspace, id }];
    }),
  ).values(),
];

/** Returns the scopes that a page names first. Rows name those of older reservations. */
const scopesOf = (facts: readonly Fact[]): ScopeName[] =>
  facts.flatMap(({ workspace, event }) => {
    if (event.type === 'BudgetReserved') return event.data.scopes.map(({ key }) => ({ workspace, key }));
    if (event.type !== 'BudgetCorrected') return [];
    return (event.data.figure?.scopeKeys ?? []).map((key) => ({ workspace, key }));
  });

const applyPage = async (client: pg.ClientBase, facts: readonly Fact[]): Promise<void> => {
  const names = namesOf(facts);
  const state = await lockLedger(client, scopesOf(facts), names);
  const ledgers = new Map<string, Ledger>();
  const changes: (BalanceChange & { workspace: string })[] = [];
  for (const { workspace, event } of facts) {
    const ledger = ledgers.get(workspace) ?? ledgerFrom(state.get(workspace));
    ledgers.set(workspace, ledger);
    changes.push(...ledger.put(event).map((change) => ({ ...change, workspace })));
  }
  const reservations = names.flatMap(({ workspace, id }) => {
    const after = ledgers.get(workspace)?.reservation(id);
    const isNew = !state.get(workspace)?.reservations.has(id);
    return after === undefined || after.status === 'none' ? [] : [{ workspace, id, state: after, isNew }];
  });
  await writeLedger(client, { changes, reservations });
};

const factOf = (event: RecordedEvent): Fact => ({
  workspace: event.workspace,
  event: BudgetEvent.parse(upcast(event)),
});

const isLimit = ({ type }: RecordedEvent): boolean =>
  type === 'BudgetLimitSet' || type === 'BudgetLimitRemoved';

const limitsOf = (event: RecordedEvent): unknown[] => {
  const { type, data } = BudgetLimitEvent.parse(upcast(event));
  if (type === 'BudgetLimitRemoved')
    return [event.workspace, data.scopeKey, null, null, event.position, false];
  const { scopeKey, limitTokens, limitMicroUsd } = data;
  return [event.workspace, scopeKey, limitTokens, limitMicroUsd, event.position, true];
};

const applyLimits = async (client: pg.ClientBase, events: readonly RecordedEvent[]): Promise<void> => {
  for (const event of events) await client.query(WRITE_LIMIT_SQL, limitsOf(event));
};

/**
 * Applies budget events to balances, reservations and limits, in the caller's transaction.
 */
export const applyBudgetEvents = async (
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<void> => {
  await applyLimits(client, events.filter(isLimit));
  const facts = events.filter((event) => !isLimit(event)).map(factOf);
  if (facts.length > 0) await applyPage(client, facts);
};

/**
 * Rebuilds balances, reservations and limits from the budget events, in one transaction with
 * bounded memory. Readers see the old rows until it commits. Admissions wait, or are refused as
 * transient after the lock timeout. Returns the number of events.
 */
export const rebuildBalances = (pool: pg.Pool): Promise<number> =>
  inTransaction(pool, async (client) => {
    await client.query('lock table budget_balances, budget_reservations, budget_limits in exclusive mode');
    await client.query('delete from budget_limits');
    await client.query('delete from budget_balances');
    await client.query('delete from budget_reservations');
    const log = createLogReader(client);
    let read = 0;
    let after = 0;
    for (;;) {
      const { events: page } = await log.readLogPage({ after, limit: PAGE, categories: ['budget'] });
      const last = page.at(-1);
      if (!last) return read;
      await applyBudgetEvents(client, page);
      after = last.position;
      read += page.length;
    }
  });
