import { Controller, Inject } from '@nestjs/common';
import { expireReservations, rollBudgetPeriods } from '@antiphon/contracts/metering';
import { HandleRequest } from '@antiphon/messaging';
import type { EndReservations } from '../end-reservations/end-reservations.js';
import { END_RESERVATIONS, ROLL_PERIODS } from '../tokens.js';
import type { RollPeriods } from './roll-periods.js';

/** What the agent's Temporal schedules ask for. */
@Controller()
export class SweepBudgetsController {
  constructor(
    @Inject(END_RESERVATIONS) private readonly endReservations: EndReservations,
    @Inject(ROLL_PERIODS) private readonly rollPeriods: RollPeriods,
  ) {}

  @HandleRequest(expireReservations)
  async expire(_request: Record<string, never>): Promise<{ ended: number }> {
    return { ended: await this.endReservations.sweep() };
  }

  @HandleRequest(rollBudgetPeriods)
  roll(_request: Record<string, never>): Promise<{ ended: number; periods: string[] }> {
    return this.rollPeriods();
  }
}
