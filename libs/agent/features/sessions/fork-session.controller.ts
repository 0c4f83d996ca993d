import { Controller, Inject } from '@nestjs/common';
import { forkSession } from '@antiphon/contracts/agent';
import { HandleRequest } from '@antiphon/messaging';
import { AGENT_RUNTIME } from '../agent-runtime.js';
import type { AgentRuntime } from '../agent-runtime.js';
import type { ForkSessionReply, ForkSessionRequest } from './fork-session.handler.js';

@Controller()
export class ForkSessionController {
  constructor(@Inject(AGENT_RUNTIME) private readonly runtime: AgentRuntime) {}

  @HandleRequest(forkSession)
  fork(request: ForkSessionRequest): Promise<ForkSessionReply> {
    return this.runtime.forkSession(request);
  }
}
