import { Module } from '@nestjs/common';

/** What the sandbox service is made of. */
@Module({ imports: [] })
export class AppModule {}
