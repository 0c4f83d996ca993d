import { createBoundedMap } from '@antiphon/kernel';
import { emptyBalance, ledgerFrom } from '@antiphon/metering-domain';
import type { Balance, LedgerDecision, LedgerRules, Reservation } from '@antiphon/metering-domain';
import type { LedgerState, ScopeName } from './ledger-rows.js';
import { reservationOf, scopesOf } from './plan-batch.js';
import type { LedgerWork } from './plan-batch.js';

/**
 * What this process last saw of the ledger's rows. It may be out of date, which a commit notices (`budget_commit`):
 * it saves the look before a decision, and never decides anything by itself.
 */
export interface LedgerMemory {
  /** What the works need, as it is remembered; null where a reservation is not. */
  recall(works: readonly LedgerWork[], rules: LedgerRules): LedgerState | null;
  /** Keeps what was committed: the state that it was decided on, moved on by its events. */
  remember(state: LedgerState, works: readonly LedgerWork[], decisions: readonly LedgerDecision[]): void;
  forget(): void;
}

interface Draft {
  readonly balances: Map<string, Balance>;
  readonly reservations: Map<string, Reservation>;
}

/** Some hundred bytes each: tens of MiB at most. */
const MAX_SCOPES = 10_000;
const MAX_RESERVATIONS = 10_000;

const nameOf = (workspace: string, id: string): string => `${workspace} ${id}`;

export const createLedgerMemory = (): LedgerMemory => {
  const balances = createBoundedMap<Balance>(MAX_SCOPES);
  const reservations = createBoundedMap<Reservation>(MAX_RESERVATIONS);

  /** A scope that nobody has seen is taken for an empty one; the commit knows better. */
  const addScope = (draft: Draft, { workspace, key }: ScopeName): void =>
    void draft.balances.set(key, balances.get(nameOf(workspace, key)) ?? emptyBalance);

  const addReservation = (draft: Draft, { workspace, command }: LedgerWork, id: string): boolean => {
    const known = reservations.get(nameOf(workspace, id));
    // One that is to be made is most likely a new one; if it is not, the log refuses it.
    if (known === undefined || known.status === 'none') return command.type === 'Reserve';
    draft.reservations.set(id, known);
    for (const { key } of known.reserved.scopes) addScope(draft, { workspace, key });
    return true;
  };

  const add = (draft: Draft, work: LedgerWork, rules: LedgerRules): boolean => {
    if (work.command.type !== 'Reserve' && work.command.type !== 'Settle') return false;
    for (const scope of scopesOf(work, rules)) addScope(draft, scope);
    return addReservation(draft, work, reservationOf(work) ?? '');
  };

  return {
    recall: (works, rules) => {
      const state = new Map<string, Draft>();
      for (const work of works) {
        const draft = state.get(work.workspace) ?? { balances: new Map(), reservations: new Map() };
        state.set(work.workspace, draft);
        if (!add(draft, work, rules)) return null;
      }
      return state;
    },
    remember: (state, works, decisions) => {
      for (const [workspace, snapshot] of state) {
        const ledger = ledgerFrom(snapshot);
        decisions.forEach((decision, index) => {
          if ('error' in decision || works[index]?.workspace !== workspace) return;
          for (const event of decision.events) ledger.put(event);
        });
        const after = ledger.snapshot();
        for (const [key, balance] of after.balances) balances.put(nameOf(workspace, key), balance);
        for (const [id, known] of after.reservations) reservations.put(nameOf(workspace, id), known);
      }
    },
    forget: () => {
      balances.clear();
      reservations.clear();
    },
  };
};
