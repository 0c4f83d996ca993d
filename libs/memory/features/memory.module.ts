import { Module } from '@nestjs/common';
import type { Provider } from '@nestjs/common';
import type pg from 'pg';
import type { AntiphonConfig } from '@antiphon/config';
import type { Logger } from '@antiphon/observability';
import { CONFIG, DATABASE_POOL, HEALTH, LOGGER } from '@antiphon/service-host';
import type { HealthRegistry } from '@antiphon/service-host';
import { AssembleContextController } from './assemble-context/assemble-context.controller.js';
import { createAssembleContext } from './assemble-context/assemble-context.js';
import type { AssembleContext } from './assemble-context/assemble-context.js';
import { BelievedFactsController } from './believed-facts/believed-facts.controller.js';
import { createBelievedFacts } from './believed-facts/believed-facts.js';
import { MemoryLifecycle } from './memory.lifecycle.js';
import { openIdentityBook } from './load-souls/identity-book.js';
import type { IdentityBook } from './load-souls/identity-book.js';
import { QueryFactsController } from './query-facts/query-facts.controller.js';
import { createQueryFacts } from './query-facts/query-facts.js';
import { createRecallFacts } from './recall-facts/recall-facts.js';
import type { RecallFacts } from './recall-facts/recall-facts.js';
import { ASSEMBLE_CONTEXT, BELIEVED_FACTS, IDENTITY_BOOK, QUERY_FACTS, RECALL_FACTS } from './tokens.js';

const identityProvider: Provider = {
  provide: IDENTITY_BOOK,
  inject: [CONFIG, LOGGER, HEALTH],
  useFactory: async (
    config: AntiphonConfig,
    logger: Logger,
    health: HealthRegistry,
  ): Promise<IdentityBook> => {
    const book = await openIdentityBook(config.agents, logger);
    health.addFact('identities', () => book.facts().map((fact) => ({ ...fact })));
    return book;
  },
};

const recallProvider: Provider = {
  provide: RECALL_FACTS,
  inject: [DATABASE_POOL],
  useFactory: (pool: pg.Pool): RecallFacts => createRecallFacts(pool),
};

const assembleProvider: Provider = {
  provide: ASSEMBLE_CONTEXT,
  inject: [RECALL_FACTS, IDENTITY_BOOK, CONFIG],
  useFactory: (recallFacts: RecallFacts, identities: IdentityBook, config: AntiphonConfig): AssembleContext =>
    createAssembleContext({ recallFacts, identities, config }),
};

const queryProvider: Provider = {
  provide: QUERY_FACTS,
  inject: [RECALL_FACTS],
  useFactory: createQueryFacts,
};

const believedProvider: Provider = {
  provide: BELIEVED_FACTS,
  inject: [DATABASE_POOL],
  useFactory: createBelievedFacts,
};

/** Memory: what was told and who an agent is, put before a model within a budget of tokens. */
@Module({
  controllers: [AssembleContextController, QueryFactsController, BelievedFactsController],
  providers: [
    identityProvider,
    recallProvider,
    assembleProvider,
    queryProvider,
    believedProvider,
    MemoryLifecycle,
  ],
})
export class MemoryModule {}
