import { Controller, Inject } from '@nestjs/common';
import { reserveBudget } from '@antiphon/contracts/metering';
import type { ReserveBudgetReply, ReserveBudgetRequest } from '@antiphon/contracts/metering';
import { HandleRequest } from '@antiphon/messaging';
import { RESERVE_BUDGET } from '../tokens.js';
import type { ReserveBudget } from './reserve-budget.js';

@Controller()
export class ReserveBudgetController {
  constructor(@Inject(RESERVE_BUDGET) private readonly reserveBudget: ReserveBudget) {}

  @HandleRequest(reserveBudget)
  reserve(request: ReserveBudgetRequest): Promise<ReserveBudgetReply> {
    return this.reserveBudget(request);
  }
}
