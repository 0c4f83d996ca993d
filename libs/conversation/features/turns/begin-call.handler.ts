import { Controller, Inject } from '@nestjs/common';
import { CallPermits } from './call-permits.js';
import { beginToolCall } from '@antiphon/contracts/agent';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';

/** Handles `cmd.agent.call.begin`: permits the first effect of a tool call of this process. */
@Controller()
export class BeginCall {
  constructor(@Inject(CallPermits) private readonly permits: CallPermits) {}

  @HandleRequest(beginToolCall)
  handle({ attemptId }: z.output<typeof beginToolCall.request>): { granted: boolean } {
    return { granted: this.permits.use(attemptId) };
  }
}
