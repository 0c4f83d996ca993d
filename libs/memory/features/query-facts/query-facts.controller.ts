import { Controller, Inject } from '@nestjs/common';
import { queryFacts } from '@antiphon/contracts/memory';
import { HandleRequest } from '@antiphon/messaging';
import { QUERY_FACTS } from '../tokens.js';
import type { QueryFacts, QueryReply, QueryRequest } from './query-facts.js';

@Controller()
export class QueryFactsController {
  constructor(@Inject(QUERY_FACTS) private readonly queryFacts: QueryFacts) {}

  @HandleRequest(queryFacts)
  query(request: QueryRequest): Promise<QueryReply> {
    return this.queryFacts(request);
  }
}
