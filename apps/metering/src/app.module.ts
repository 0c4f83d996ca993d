import { Module } from '@nestjs/common';
import { MeteringModule } from '@antiphon/metering-features';

/** What the metering service is made of. */
@Module({ imports: [MeteringModule] })
export class AppModule {}
