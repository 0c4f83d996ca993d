import { Module } from '@nestjs/common';
import { ArchiverModule, LogRootsModule, LogStatusModule, RelayModule } from '@antiphon/service-host';
import { announceTurnEnd } from './announce-turn-end.js';
import { MemoryModule } from './memory.module.js';
import { LogRatesModule } from './rates/log-rates.module.js';

/** The memory service. It also relays the log to JetStream, counts, signs and archives it. */
@Module({
  imports: [
    MemoryModule,
    RelayModule.announcing(announceTurnEnd),
    LogRootsModule,
    LogStatusModule,
    LogRatesModule,
    ArchiverModule,
  ],
})
export class MemoryServiceModule {}
