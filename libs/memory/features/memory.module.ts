import { Module } from '@nestjs/common';
import type { Provider } from '@nestjs/common';
import type pg from 'pg';
import type { AntiphonConfig } from '@antiphon/config';
import type { Logger } from '@antiphon/observability';
import { CONFIG, DATABASE_POOL, LOGGER } from '@antiphon/service-host';
import { AssembleContextController } from './assemble-context/assemble-context.controller.js';
import { createAssembleContext } from './assemble-context/assemble-context.js';
import type { AssembleContext } from './assemble-context/assemble-context.js';
import { MemoryLifecycle } from './memory.lifecycle.js';
import { loadSouls } from './load-souls/soul-book.js';
import type { SoulBook } from './load-souls/soul-book.js';
import { QueryFactsController } from './query-facts/query-facts.controller.js';
import { createQueryFacts } from './query-facts/query-facts.js';
import { createRecallFacts } from './recall-facts/recall-facts.js';
import type { RecallFacts } from './recall-facts/recall-facts.js';
import { ASSEMBLE_CONTEXT, QUERY_FACTS, RECALL_FACTS, SOUL_BOOK } from './tokens.js';

const soulsProvider: Provider = {
  provide: SOUL_BOOK,
  inject: [CONFIG, LOGGER],
  useFactory: (config: AntiphonConfig, logger: Logger): Promise<SoulBook> => loadSouls(config.agents, logger),
};

const recallProvider: Provider = {
  provide: RECALL_FACTS,
  inject: [DATABASE_POOL],
  useFactory: (pool: pg.Pool): RecallFacts => createRecallFacts(pool),
};

const assembleProvider: Provider = {
  provide: ASSEMBLE_CONTEXT,
  inject: [RECALL_FACTS, SOUL_BOOK, CONFIG],
  useFactory: (recallFacts: RecallFacts, souls: SoulBook, config: AntiphonConfig): AssembleContext =>
    createAssembleContext({ recallFacts, souls, config }),
};

const queryProvider: Provider = {
  provide: QUERY_FACTS,
  inject: [RECALL_FACTS],
  useFactory: createQueryFacts,
};

/** Memory: what was told and who an agent is, put before a model within a budget of tokens. */
@Module({
  controllers: [AssembleContextController, QueryFactsController],
  providers: [soulsProvider, recallProvider, assembleProvider, queryProvider, MemoryLifecycle],
})
export class MemoryModule {}
