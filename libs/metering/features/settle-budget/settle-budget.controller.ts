import { Controller, Inject } from '@nestjs/common';
import { settleBudget } from '@antiphon/contracts/metering';
import type { SettleBudgetReply, SettleBudgetRequest } from '@antiphon/contracts/metering';
import { HandleRequest } from '@antiphon/messaging';
import { SETTLE_BUDGET } from '../tokens.js';
import type { SettleBudget } from './settle-budget.js';

@Controller()
export class SettleBudgetController {
  constructor(@Inject(SETTLE_BUDGET) private readonly settleBudget: SettleBudget) {}

  @HandleRequest(settleBudget)
  async settle(request: SettleBudgetRequest): Promise<SettleBudgetReply> {
    return { status: await this.settleBudget(request) };
  }
}
