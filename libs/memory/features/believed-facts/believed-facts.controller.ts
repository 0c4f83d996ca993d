import { Controller, Inject } from '@nestjs/common';
import { believedFacts } from '@antiphon/contracts/memory';
import { HandleRequest } from '@antiphon/messaging';
import { BELIEVED_FACTS } from '../tokens.js';
import type { BelievedFacts, BelievedReply, BelievedRequest } from './believed-facts.js';

@Controller()
export class BelievedFactsController {
  constructor(@Inject(BELIEVED_FACTS) private readonly believedFacts: BelievedFacts) {}

  @HandleRequest(believedFacts)
  believed(request: BelievedRequest): Promise<BelievedReply> {
    return this.believedFacts(request);
  }
}
