import { Controller, Inject } from '@nestjs/common';
import { newSession } from '@antiphon/contracts/agent';
import { HandleRequest } from '@antiphon/messaging';
import { AGENT_RUNTIME } from '../agent-runtime.js';
import type { AgentRuntime } from '../agent-runtime.js';
import type { StartSessionReply, StartSessionRequest } from './start-session.handler.js';

@Controller()
export class StartSessionController {
  constructor(@Inject(AGENT_RUNTIME) private readonly runtime: AgentRuntime) {}

  @HandleRequest(newSession)
  start(request: StartSessionRequest): Promise<StartSessionReply> {
    return this.runtime.startSession(request);
  }
}
