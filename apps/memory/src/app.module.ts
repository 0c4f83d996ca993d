import { Module } from '@nestjs/common';

/** What the memory service is made of. */
@Module({ imports: [] })
export class AppModule {}
