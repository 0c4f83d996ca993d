import { Module } from '@nestjs/common';
import { MemoryModule } from '@antiphon/memory-features';
import { RelayModule } from '@antiphon/service-host';

/** What the memory service is made of. It also carries the log to JetStream. */
@Module({ imports: [MemoryModule, RelayModule] })
export class AppModule {}
