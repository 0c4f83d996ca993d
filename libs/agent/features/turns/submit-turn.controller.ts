import { Controller, Inject } from '@nestjs/common';
import { submitTurn } from '@antiphon/contracts/agent';
import { HandleRequest } from '@antiphon/messaging';
import { AGENT_RUNTIME } from '../agent-runtime.js';
import type { AgentRuntime } from '../agent-runtime.js';
import type { SubmitTurnReply, SubmitTurnRequest } from './submit-turn.handler.js';

@Controller()
export class SubmitTurnController {
  constructor(@Inject(AGENT_RUNTIME) private readonly runtime: AgentRuntime) {}

  @HandleRequest(submitTurn)
  submit(request: SubmitTurnRequest): Promise<SubmitTurnReply> {
    return this.runtime.submitTurn(request);
  }
}
