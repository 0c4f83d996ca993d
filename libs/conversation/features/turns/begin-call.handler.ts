import { Controller, Inject } from '@nestjs/common';
import { beginToolCall } from '@antiphon/contracts/agent';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { CONVERSATION_SERVICES } from '../conversation.tokens.js';
import type { CallPermits } from './call-permits.js';

/** Handles `cmd.agent.call.begin`: permits the first effect of a tool call of this process. */
@Controller()
export class BeginCall {
  constructor(@Inject(CONVERSATION_SERVICES) private readonly deps: { readonly permits: CallPermits }) {}

  @HandleRequest(beginToolCall)
  handle({ attemptId }: z.output<typeof beginToolCall.request>): { granted: boolean } {
    return { granted: this.deps.permits.use(attemptId) };
  }
}
