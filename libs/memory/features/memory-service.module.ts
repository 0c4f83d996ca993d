import { Module } from '@nestjs/common';
import { ArchiverModule, LogRootsModule, LogStatusModule, RelayModule } from '@antiphon/service-host';
import { announceTurnEnd } from './announce-turn-end.js';
import { MemoryModule } from './memory.module.js';

/** The memory service, which also relays the log to JetStream, signs its roots and archives it. */
@Module({
  imports: [
    MemoryModule,
    RelayModule.announcing(announceTurnEnd),
    LogRootsModule,
    LogStatusModule,
    ArchiverModule,
  ],
})
export class MemoryServiceModule {}
