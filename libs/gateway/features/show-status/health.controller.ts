import { Controller, Get, Inject } from '@nestjs/common';
import type { JsonValue } from '@antiphon/kernel';
import { STATUS } from '../gateway.tokens.js';

/** `GET /api/v1/health`: what `status` tells over the socket. */
@Controller('api/v1/health')
export class GatewayHealthController {
  constructor(@Inject(STATUS) private readonly status: () => Promise<Record<string, JsonValue>>) {}

  @Get()
  read(): Promise<Record<string, JsonValue>> {
    return this.status();
  }
}
