import { Controller, Inject } from '@nestjs/common';
import type pg from 'pg';
import { expireReservations, rollBudgetPeriods, unfreezeBudget } from '@antiphon/contracts/metering';
import type { UnfreezeBudgetRequest } from '@antiphon/contracts/metering';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import { isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { periodKeysAt } from '@antiphon/metering-domain';
import { CLOCK, DATABASE_POOL } from '@antiphon/service-host';
import type { BudgetLedger } from '../ledger/ledger.js';
import { BUDGET_LEDGER, END_RESERVATIONS } from '../metering.tokens.js';
import type { EndReservations } from './end-reservations.js';

const DAY_MS = 24 * 3_600_000;
const OPEN_SQL = `select distinct workspace from budget_reservations
  where open_until is not null and $1 = any (scope_keys)`;

const workspacesWithOpen = async (pool: pg.Pool, scopeKey: string): Promise<string[]> => {
  try {
    const { rows } = await acrossWorkspaces(pool).query<{ workspace: string }>(OPEN_SQL, [scopeKey]);
    return rows.map(({ workspace }) => workspace);
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

/** Ends reservations of periods that are over. A period begins with its first reservation. */
@Controller()
export class RollBudgetPeriods {
  constructor(
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(END_RESERVATIONS) private readonly endReservations: Pick<EndReservations, 'inScope'>,
  ) {}

  /** Returns the number of reservations that ended, and the periods that were checked. */
  @HandleRequest(rollBudgetPeriods)
  async handle(_request: Record<string, never>): Promise<{ ended: number; periods: string[] }> {
    const keysAt = (time: number): string[] => periodKeysAt(isoTime({ now: () => time }));
    const current = new Set(keysAt(this.clock.now()));
    const periods = keysAt(this.clock.now() - DAY_MS).filter((key) => !current.has(key));
    let ended = 0;
    for (const key of periods)
      for (const workspace of await workspacesWithOpen(this.pool, key))
        ended += await this.endReservations.inScope(workspace, key);
    return { ended, periods };
  }
}

/** Sweeps expired reservations when the agent's Temporal schedule asks for it. */
@Controller()
export class ExpireReservations {
  constructor(@Inject(END_RESERVATIONS) private readonly endReservations: Pick<EndReservations, 'sweep'>) {}

  @HandleRequest(expireReservations)
  async handle(_request: Record<string, never>): Promise<{ ended: number }> {
    return { ended: await this.endReservations.sweep() };
  }
}

/**
 * Lets a frozen scope admit calls again, after an operator has checked the charge over its bound.
 */
@Controller()
export class UnfreezeBudget {
  constructor(@Inject(BUDGET_LEDGER) private readonly ledger: BudgetLedger) {}

  @HandleRequest(unfreezeBudget)
  async handle({ workspace, ...rest }: UnfreezeBudgetRequest): Promise<{ unfrozen: boolean }> {
    const { unfrozen } = await this.ledger.submit(workspace, { type: 'Unfreeze', ...rest });
    return { unfrozen };
  }
}
