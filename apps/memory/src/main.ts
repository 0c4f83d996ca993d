import { Module } from '@nestjs/common';
import { announceTurnEnd, MemoryModule } from '@antiphon/memory-features';
import {
  ArchiverModule,
  LogStatusModule,
  LogRootsModule,
  RelayModule,
  runService,
} from '@antiphon/service-host';

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
class AppModule {}

await runService({ service: 'memory', module: AppModule, env: process.env });
