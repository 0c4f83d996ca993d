import { Module } from '@nestjs/common';
import { MemoryModule } from '@antiphon/memory-features';
import { LogRootsModule, RelayModule } from '@antiphon/service-host';

/** What the memory service is made of. It also carries the log to JetStream, and signs its roots. */
@Module({ imports: [MemoryModule, RelayModule, LogRootsModule] })
export class AppModule {}
