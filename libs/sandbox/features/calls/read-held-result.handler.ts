import { Controller, Inject } from '@nestjs/common';
import { RESULT_PART_BYTES, readHeldResult, releaseHeldResult } from '@antiphon/contracts/sandbox';
import { notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { heldKeyOf } from './held-results.js';
import { SANDBOX } from './sandbox.js';
import type { Sandbox } from './sandbox.js';

/** Handles `cmd.sandbox.result.*`: hands large results over to their callers, in parts. */
@Controller()
export class ReadHeldResult {
  constructor(@Inject(SANDBOX) private readonly sandbox: Pick<Sandbox, 'held'>) {}

  /** Throws `SANDBOX.RESULT_GONE`. */
  @HandleRequest(readHeldResult)
  read(request: z.output<typeof readHeldResult.request>): z.input<typeof readHeldResult.reply> {
    const part = this.sandbox.held.read(heldKeyOf(request), request.offset, RESULT_PART_BYTES);
    if (!part) throw notFound('SANDBOX.RESULT_GONE', `the result of the call ${request.callId} is gone`);
    return { data: part.toString('base64') };
  }

  @HandleRequest(releaseHeldResult)
  release(request: z.output<typeof releaseHeldResult.request>): Record<string, never> {
    this.sandbox.held.release(heldKeyOf(request));
    return {};
  }
}
