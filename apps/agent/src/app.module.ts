import { Module } from '@nestjs/common';

/** What the agent service is made of. */
@Module({ imports: [] })
export class AppModule {}
