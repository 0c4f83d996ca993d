import { Controller, Inject } from '@nestjs/common';
import { cancelTurn } from '@antiphon/contracts/agent';
import { HandleRequest } from '@antiphon/messaging';
import { AGENT_RUNTIME } from '../agent-runtime.js';
import type { AgentRuntime } from '../agent-runtime.js';
import type { CancelTurnReply, CancelTurnRequest } from './cancel-turn.handler.js';

@Controller()
export class CancelTurnController {
  constructor(@Inject(AGENT_RUNTIME) private readonly runtime: AgentRuntime) {}

  @HandleRequest(cancelTurn)
  cancel(request: CancelTurnRequest): Promise<CancelTurnReply> {
    return this.runtime.cancelTurn(request);
  }
}
