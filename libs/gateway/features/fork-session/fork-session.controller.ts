import { Body, Controller, Headers, HttpCode, Inject, Param, Post } from '@nestjs/common';
import { forkSession } from '@antiphon/contracts/agent';
import { ForkBody, Id, Key } from '@antiphon/contracts/gateway';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import type { GatewayRequests } from '../gateway-requests.port.js';
import { HTTP_CALLER, WORKSPACE } from '../gateway.tokens.js';
import { ReadPipe, readAs } from '../read-body/read-body.js';

/** `POST /api/v1/sessions/:id/fork`: a new session that goes on from this one as it was behind an event. */
@Controller('api/v1/sessions')
export class ForkSessionController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(WORKSPACE) private readonly workspace: string,
  ) {}

  @Post(':id/fork')
  @HttpCode(201)
  fork(
    @Param('id', new ReadPipe(Id)) sessionId: string,
    @Body(new ReadPipe(ForkBody)) body: z.output<typeof ForkBody>,
    @Headers('idempotency-key') key?: string,
  ): Promise<z.output<typeof forkSession.reply>> {
    const idempotencyKey = readAs(Key, key, 'GATEWAY.INVALID_HEADER');
    return this.requests.request(forkSession, {
      ...{ ...body, sessionId, workspace: this.workspace, caller: HTTP_CALLER },
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    });
  }
}
