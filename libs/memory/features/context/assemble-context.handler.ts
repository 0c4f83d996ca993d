import { Controller, Inject } from '@nestjs/common';
import type { z } from 'zod';
import type { AntiphonConfig } from '@antiphon/config';
import { assembleContext as contract } from '@antiphon/contracts/memory';
import { failpoint } from '@antiphon/kernel';
import { assembleContext } from '@antiphon/memory-domain';
import { HandleRequest } from '@antiphon/messaging';
import { CONFIG } from '@antiphon/service-host';
import { IDENTITY_BOOK } from '../identity/identity-book.js';
import type { IdentityBook } from '../identity/identity-book.js';
import { RECALL_FACTS } from './recall-facts.js';
import type { RecallFacts } from './recall-facts.js';

type AssembleReply = z.input<typeof contract.reply>;

const EMPTY_CONTEXT: AssembleReply = { soul: null, facts: [], tokens: 0, version: 0 };

/**
 * Assembles the memory part of a model's context. One indexed query reads the facts while the
 * agent's documents are checked for changes.
 */
@Controller()
export class AssembleContext {
  constructor(
    @Inject(RECALL_FACTS) private readonly recallFacts: RecallFacts,
    @Inject(IDENTITY_BOOK) private readonly identities: Pick<IdentityBook, 'soulOf'>,
    @Inject(CONFIG) private readonly config: Pick<AntiphonConfig, 'memory' | 'features'>,
  ) {}

  @HandleRequest(contract)
  async handle(request: z.output<typeof contract.request>): Promise<AssembleReply> {
    const { workspace, sessionId, sessionKey, agentId, atLeast, query, budgetTokens } = request;
    await failpoint('memory.context.asked');
    if (!this.config.features.memoryV1) return { ...EMPTY_CONTEXT, version: atLeast };
    const recalled = this.config.memory.semanticEnabled
      ? this.recallFacts({ workspace, sessionId, sessionKey, atLeast, includeSuperseded: false })
      : { facts: [], version: atLeast };
    const [soul, { facts, version }] = await Promise.all([this.identities.soulOf(agentId), recalled]);
    await failpoint('memory.context.assembled');
    const context = assembleContext({ soul, facts, query, budgetTokens });
    return { soul: context.soul, facts: [...context.facts], tokens: context.tokens, version };
  }
}
