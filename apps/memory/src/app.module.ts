import { Module } from '@nestjs/common';
import { MemoryModule } from '@antiphon/memory-features';

/** What the memory service is made of. */
@Module({ imports: [MemoryModule] })
export class AppModule {}
