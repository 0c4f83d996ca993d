import { Controller, Inject } from '@nestjs/common';
import { unfreezeBudget } from '@antiphon/contracts/metering';
import type { UnfreezeBudgetRequest } from '@antiphon/contracts/metering';
import { HandleRequest } from '@antiphon/messaging';
import type { BudgetLedger } from '../keep-ledger/ledger.js';
import { BUDGET_LEDGER } from '../tokens.js';

/** An operator has looked at a charge over its bound and lets its scope admit calls again. */
@Controller()
export class UnfreezeScopeController {
  constructor(@Inject(BUDGET_LEDGER) private readonly ledger: BudgetLedger) {}

  @HandleRequest(unfreezeBudget)
  async unfreeze({ workspace, ...rest }: UnfreezeBudgetRequest): Promise<{ unfrozen: boolean }> {
    const { unfrozen } = await this.ledger.submit(workspace, { type: 'Unfreeze', ...rest });
    return { unfrozen };
  }
}
