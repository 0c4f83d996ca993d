import { Controller, Inject } from '@nestjs/common';
import { assembleContext } from '@antiphon/contracts/memory';
import { HandleRequest } from '@antiphon/messaging';
import { ASSEMBLE_CONTEXT } from '../tokens.js';
import type { AssembleContext, AssembleReply, AssembleRequest } from './assemble-context.js';

@Controller()
export class AssembleContextController {
  constructor(@Inject(ASSEMBLE_CONTEXT) private readonly assembleContext: AssembleContext) {}

  @HandleRequest(assembleContext)
  assemble(request: AssembleRequest): Promise<AssembleReply> {
    return this.assembleContext(request);
  }
}
