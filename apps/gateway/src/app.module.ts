import { Module } from '@nestjs/common';

/** What the gateway service is made of. */
@Module({ imports: [] })
export class AppModule {}
