import { Controller, Inject } from '@nestjs/common';
import { callTool } from '@antiphon/contracts/sandbox';
import { HandleRequest } from '@antiphon/messaging';
import { SANDBOX } from '../sandbox.js';
import type { Sandbox } from '../sandbox.js';
import type { CallToolReply, CallToolRequest } from './call-tool.handler.js';

@Controller()
export class CallToolController {
  constructor(@Inject(SANDBOX) private readonly sandbox: Sandbox) {}

  @HandleRequest(callTool)
  call(request: CallToolRequest): Promise<CallToolReply> {
    return this.sandbox.calls.call(request);
  }
}
