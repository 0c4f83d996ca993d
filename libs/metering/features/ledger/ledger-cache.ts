import { createBoundedMap } from '@antiphon/kernel';
import { emptyBalance, ledgerFrom } from '@antiphon/metering-domain';
import type { Balance, LedgerDecision, Reservation } from '@antiphon/metering-domain';
import { reservationOf, scopesOf } from './ledger-batch.js';
import type { BatchRules, LedgerWork } from './ledger-batch.js';
import type { LedgerState, ScopeName } from './ledger-rows.js';

interface Draft {
  readonly balances: Map<string, Balance>;
  readonly reservations: Map<string, Reservation>;
}

/** Maximum entries of a few hundred bytes each: tens of MiB. */
const MAX_SCOPES = 10_000;
const MAX_RESERVATIONS = 10_000;

const nameOf = (workspace: string, id: string): string => `${workspace} ${id}`;

/**
 * Read cache for balances and reservations. The agent's commits change both
 * (`antiphon_append_extended`), and so do other processes. The commit checks the limits and the
 * versions (`budget_commit`), so a stale entry only costs a retry.
 */
export class LedgerCache {
  readonly #balances = createBoundedMap<Balance>(MAX_SCOPES);
  readonly #reservations = createBoundedMap<Reservation>(MAX_RESERVATIONS);

  /** Returns the rows that a batch needs, or null if a reservation is not cached. */
  read(works: readonly LedgerWork[], rules: BatchRules): LedgerState | null {
    const state = new Map<string, Draft>();
    for (const work of works) {
      const draft = state.get(work.workspace) ?? { balances: new Map(), reservations: new Map() };
      state.set(work.workspace, draft);
      if (!this.#addRows(draft, work, rules)) return null;
    }
    return state;
  }

  /** Stores a committed batch: the state that it was decided on, with its events applied. */
  store(state: LedgerState, works: readonly LedgerWork[], decisions: readonly LedgerDecision[]): void {
    for (const [workspace, snapshot] of state) {
      const ledger = ledgerFrom(snapshot);
      decisions.forEach((decision, index) => {
        if ('error' in decision || works[index]?.workspace !== workspace) return;
        for (const event of decision.events) ledger.put(event);
      });
      const after = ledger.snapshot();
      for (const [key, balance] of after.balances) this.#balances.put(nameOf(workspace, key), balance);
      for (const [id, known] of after.reservations) this.#reservations.put(nameOf(workspace, id), known);
    }
  }

  /** Returns a reservation, if it is cached. */
  reservation(workspace: string, id: string): Reservation | undefined {
    return this.#reservations.get(nameOf(workspace, id));
  }

  clear(): void {
    this.#balances.clear();
    this.#reservations.clear();
  }

  #addRows(draft: Draft, work: LedgerWork, rules: BatchRules): boolean {
    if (work.command.type !== 'Reserve' && work.command.type !== 'Settle') return false;
    for (const scope of scopesOf(work, rules)) this.#addScope(draft, scope);
    return this.#addReservation(draft, work, reservationOf(work) ?? '');
  }

  /** Adds a balance. A scope that is not cached is assumed to be empty. The commit checks it. */
  #addScope(draft: Draft, { workspace, key }: ScopeName): void {
    draft.balances.set(key, this.#balances.get(nameOf(workspace, key)) ?? emptyBalance);
  }

  #addReservation(draft: Draft, { workspace, command }: LedgerWork, id: string): boolean {
    const known = this.#reservations.get(nameOf(workspace, id));
    // A reservation to be made is assumed to be new. If it is not, the log refuses it.
    if (known === undefined || known.status === 'none') return command.type === 'Reserve';
    draft.reservations.set(id, known);
    for (const { key } of known.reserved.scopes) this.#addScope(draft, { workspace, key });
    return true;
  }
}
