import { Controller, Get, Header, Inject } from '@nestjs/common';
import { METRICS_MEDIA_TYPE, renderMetrics } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import { LOGGER } from './tokens.js';

/** `/metrics`: the process's metrics as Prometheus reads them. What cannot be read is left out, and logged. */
@Controller()
export class MetricsController {
  constructor(@Inject(LOGGER) private readonly logger: Logger) {}

  @Get('metrics')
  @Header('content-type', METRICS_MEDIA_TYPE)
  async metrics(): Promise<string> {
    const { text, errors } = await renderMetrics();
    for (const err of errors) this.logger.warn({ err }, 'a metric could not be read');
    return text;
  }
}
