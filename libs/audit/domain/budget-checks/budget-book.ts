import type { BudgetEvent, BudgetEventOf } from '@antiphon/contracts/metering';

type Reserved = BudgetEventOf<'BudgetReserved'>['data'];

/** What a scope holds and has spent by the audit's own reckoning; it shares no code with metering. */
export interface ScopeBook {
  reservedTokens: number;
  settledTokens: number;
  reservedMicroUsd: number;
  settledMicroUsd: number;
  frozenBy: string | null;
}

/** The book as JSON. */
export interface SavedBook {
  readonly scopes: readonly (readonly [name: string, book: ScopeBook])[];
  readonly known: readonly (readonly [id: string, own: OpenBook])[];
}

interface OpenBook {
  readonly reserved: Reserved;
  /** What an expired reservation was charged until its usage is learnt. */
  estimate: { tokens: number; microUsd: number } | null;
}

export interface BudgetBook {
  scope(workspace: string, key: string): Readonly<ScopeBook>;
  scopes(): Iterable<readonly [name: string, book: Readonly<ScopeBook>]>;
  put(workspace: string, event: BudgetEvent): void;
  save(): SavedBook;
}

const emptyBook = (): ScopeBook => ({
  reservedTokens: 0,
  settledTokens: 0,
  reservedMicroUsd: 0,
  settledMicroUsd: 0,
  frozenBy: null,
});

/** Name of a scope in the book: `<workspace> <key>`; neither holds a blank. */
export const scopeName = (workspace: string, key: string): string => `${workspace} ${key}`;

/**
 * Keeps every scope's balance along the log. It forgets a reservation once nothing more can come of it, so that it
 * grows with scopes and with what is open, not with the log.
 */
export const openBudgetBook = (from?: SavedBook): BudgetBook => {
  // Its records change as the book goes on; what was saved stays as it is.
  const saved = structuredClone(from);
  const scopes = new Map<string, ScopeBook>(saved?.scopes);
  const known = new Map<string, OpenBook>(saved?.known);

  const scope = (workspace: string, key: string): ScopeBook => {
    const name = scopeName(workspace, key);
    const book = scopes.get(name) ?? emptyBook();
    scopes.set(name, book);
    return book;
  };
  const move = (
    workspace: string,
    { scopes: names }: Reserved,
    reserved: { tokens: number; microUsd: number },
    settled: { tokens: number; microUsd: number },
  ): void => {
    for (const { key } of names) {
      const book = scope(workspace, key);
      book.reservedTokens += reserved.tokens;
      book.reservedMicroUsd += reserved.microUsd;
      book.settledTokens += settled.tokens;
      book.settledMicroUsd += settled.microUsd;
    }
  };
  const nothing = { tokens: 0, microUsd: 0 };
  const freed = ({ tokens, microUsd }: Reserved) => ({ tokens: -tokens, microUsd: -microUsd });

  const putOwn = (workspace: string, event: BudgetEvent, own: OpenBook): void => {
    const { reserved } = own;
    const id = `${workspace} ${reserved.reservationId}`;
    switch (event.type) {
      case 'BudgetSettled': {
        const { inputTokens, outputTokens, microUsd } = event.data;
        known.delete(id);
        return move(workspace, reserved, freed(reserved), { tokens: inputTokens + outputTokens, microUsd });
      }
      case 'BudgetReleased':
        known.delete(id);
        return move(workspace, reserved, freed(reserved), nothing);
      case 'BudgetExpired':
        own.estimate = { tokens: event.data.tokens, microUsd: event.data.microUsd };
        return move(workspace, reserved, freed(reserved), own.estimate);
      case 'BudgetCorrected': {
        const { inputTokens, outputTokens, microUsd } = event.data;
        const before = own.estimate ?? nothing;
        known.delete(id);
        return move(workspace, reserved, nothing, {
          tokens: inputTokens + outputTokens - before.tokens,
          microUsd: microUsd - before.microUsd,
        });
      }
      default:
        return;
    }
  };
  return {
    scope: (workspace, key) => scopes.get(scopeName(workspace, key)) ?? emptyBook(),
    scopes: () => scopes,
    save: () => ({ scopes: [...scopes], known: [...known] }),
    put: (workspace, event) => {
      if (event.type === 'BudgetScopeFrozen')
        scope(workspace, event.data.scopeKey).frozenBy = event.data.reservationId;
      else if (event.type === 'BudgetScopeUnfrozen') scope(workspace, event.data.scopeKey).frozenBy = null;
      else if (event.type === 'BudgetReserved') {
        known.set(`${workspace} ${event.data.reservationId}`, { reserved: event.data, estimate: null });
        move(workspace, event.data, event.data, nothing);
      } else {
        const own = known.get(`${workspace} ${event.data.reservationId}`);
        if (own) putOwn(workspace, event, own);
      }
    },
  };
};
