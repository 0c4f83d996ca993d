import { Module } from '@nestjs/common';

/** What the metering service is made of. */
@Module({ imports: [] })
export class AppModule {}
