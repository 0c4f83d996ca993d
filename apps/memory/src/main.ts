import { Module } from '@nestjs/common';
import { MemoryModule } from '@antiphon/memory-features';
import { LogRootsModule, RelayModule, runService } from '@antiphon/service-host';

/** The memory service, which also relays the log to JetStream and signs its roots. */
@Module({ imports: [MemoryModule, RelayModule, LogRootsModule] })
class AppModule {}

await runService({ service: 'memory', module: AppModule, env: process.env });
