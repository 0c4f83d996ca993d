import { Controller, Inject } from '@nestjs/common';
import { readBudgets } from '@antiphon/contracts/metering';
import type { ScopeUsage } from '@antiphon/contracts/metering';
import { HandleRequest } from '@antiphon/messaging';
import { READ_BUDGETS } from '../tokens.js';
import type { ReadBudgets, ReadBudgetsQuery } from './read-budgets.js';

@Controller()
export class ReadBudgetsController {
  constructor(@Inject(READ_BUDGETS) private readonly readBudgets: ReadBudgets) {}

  @HandleRequest(readBudgets)
  async read(query: ReadBudgetsQuery): Promise<{ scopes: ScopeUsage[] }> {
    return { scopes: await this.readBudgets(query) };
  }
}
