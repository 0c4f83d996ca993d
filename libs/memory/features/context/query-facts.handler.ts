import { Controller, Inject } from '@nestjs/common';
import type { z } from 'zod';
import { queryFacts as contract } from '@antiphon/contracts/memory';
import { HandleRequest } from '@antiphon/messaging';
import { RECALL_FACTS } from './recall-facts.js';
import type { RecallFacts } from './recall-facts.js';

/** Lists the facts of a session's key, newest first. */
@Controller()
export class QueryFacts {
  constructor(@Inject(RECALL_FACTS) private readonly recallFacts: RecallFacts) {}

  @HandleRequest(contract)
  async handle(request: z.output<typeof contract.request>): Promise<z.input<typeof contract.reply>> {
    const { workspace, sessionId, includeSuperseded, limit } = request;
    const { facts } = await this.recallFacts({
      workspace,
      sessionId,
      sessionKey: null,
      includeSuperseded,
      // The caller may have just seen the turn that contained the facts.
      atLeast: 'newest',
    });
    return { facts: [...facts].reverse().slice(0, limit) };
  }
}
