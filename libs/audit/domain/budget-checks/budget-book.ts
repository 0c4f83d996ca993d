import type { BudgetEvent, BudgetEventOf } from '@antiphon/contracts/metering';

type Reserved = BudgetEventOf<'BudgetReserved'>['data'];

/** Balance of a scope as the audit computes it, without code of metering. */
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
  readonly known: readonly (readonly [id: string, own: OpenReservation])[];
}

interface OpenReservation {
  readonly reserved: Reserved;
  /** Charge of an expired reservation until its usage is known. */
  estimate: Amount | null;
}

interface Scoped {
  readonly scopes: readonly Pick<Reserved['scopes'][number], 'key'>[];
}

interface Amount {
  readonly tokens: number;
  readonly microUsd: number;
}

const NOTHING: Amount = { tokens: 0, microUsd: 0 };

const emptyBook = (): ScopeBook => ({
  reservedTokens: 0,
  settledTokens: 0,
  reservedMicroUsd: 0,
  settledMicroUsd: 0,
  frozenBy: null,
});

/** Returns the name of a scope in the book, `<workspace> <key>`. Neither contains a blank. */
export const scopeName = (workspace: string, key: string): string => `${workspace} ${key}`;

/**
 * Balances of all scopes along the log. It drops a reservation once no further event can change it,
 * and so grows with the scopes and the open reservations only.
 */
export class BudgetBook {
  private readonly balances: Map<string, ScopeBook>;
  private readonly reservations: Map<string, OpenReservation>;

  constructor(from?: SavedBook) {
    // The book changes its records; the saved ones must stay unchanged.
    const saved = structuredClone(from);
    this.balances = new Map(saved?.scopes);
    this.reservations = new Map(saved?.known);
  }

  scope(workspace: string, key: string): Readonly<ScopeBook> {
    return this.balances.get(scopeName(workspace, key)) ?? emptyBook();
  }

  scopes(): Iterable<readonly [name: string, book: Readonly<ScopeBook>]> {
    return this.balances;
  }

  save(): SavedBook {
    return { scopes: [...this.balances], known: [...this.reservations] };
  }

  put(workspace: string, event: BudgetEvent): void {
    if (event.type === 'BudgetScopeFrozen')
      this.ownScope(workspace, event.data.scopeKey).frozenBy = event.data.reservationId;
    else if (event.type === 'BudgetScopeUnfrozen')
      this.ownScope(workspace, event.data.scopeKey).frozenBy = null;
    else if (event.type === 'BudgetReserved') {
      const id = `${workspace} ${event.data.reservationId}`;
      this.reservations.set(id, { reserved: event.data, estimate: null });
      this.move(workspace, event.data, event.data, NOTHING);
    } else {
      const own = this.reservations.get(`${workspace} ${event.data.reservationId}`);
      if (own) this.putEnd(workspace, event, own);
      else if (event.type === 'BudgetCorrected') this.putFigure(workspace, event.data);
    }
  }

  /** Applies the figure of a vendor to a settled reservation, which the book has dropped. */
  private putFigure(workspace: string, charge: BudgetEventOf<'BudgetCorrected'>['data']): void {
    const { figure, inputTokens, outputTokens, microUsd } = charge;
    if (figure === undefined) return;
    this.move(workspace, { scopes: figure.scopeKeys.map((key) => ({ key })) }, NOTHING, {
      tokens: inputTokens + outputTokens - figure.replacedTokens,
      microUsd: microUsd - figure.replacedMicroUsd,
    });
  }

  private ownScope(workspace: string, key: string): ScopeBook {
    const name = scopeName(workspace, key);
    const book = this.balances.get(name) ?? emptyBook();
    this.balances.set(name, book);
    return book;
  }

  private move(workspace: string, { scopes }: Scoped, reserved: Amount, settled: Amount): void {
    for (const { key } of scopes) {
      const book = this.ownScope(workspace, key);
      book.reservedTokens += reserved.tokens;
      book.reservedMicroUsd += reserved.microUsd;
      book.settledTokens += settled.tokens;
      book.settledMicroUsd += settled.microUsd;
    }
  }

  private putEnd(workspace: string, event: BudgetEvent, own: OpenReservation): void {
    const { reserved } = own;
    const id = `${workspace} ${reserved.reservationId}`;
    const released = { tokens: -reserved.tokens, microUsd: -reserved.microUsd };
    switch (event.type) {
      case 'BudgetSettled': {
        const { inputTokens, outputTokens, microUsd } = event.data;
        this.reservations.delete(id);
        return this.move(workspace, reserved, released, { tokens: inputTokens + outputTokens, microUsd });
      }
      case 'BudgetReleased':
        this.reservations.delete(id);
        return this.move(workspace, reserved, released, NOTHING);
      case 'BudgetExpired':
        own.estimate = { tokens: event.data.tokens, microUsd: event.data.microUsd };
        return this.move(workspace, reserved, released, own.estimate);
      case 'BudgetCorrected': {
        const { inputTokens, outputTokens, microUsd } = event.data;
        const before = own.estimate ?? NOTHING;
        this.reservations.delete(id);
        return this.move(workspace, reserved, NOTHING, {
          tokens: inputTokens + outputTokens - before.tokens,
          microUsd: microUsd - before.microUsd,
        });
      }
      default:
        return;
    }
  }
}
