import { Controller, Inject } from '@nestjs/common';
import { listTools } from '@antiphon/contracts/sandbox';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import { HandleRequest } from '@antiphon/messaging';
import { SANDBOX } from '../sandbox.js';
import type { Sandbox } from '../sandbox.js';

@Controller()
export class ListToolsController {
  constructor(@Inject(SANDBOX) private readonly sandbox: Sandbox) {}

  @HandleRequest(listTools)
  list(): { tools: ToolDescription[] } {
    return { tools: [...this.sandbox.tools] };
  }
}
