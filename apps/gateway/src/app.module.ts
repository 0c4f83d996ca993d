import { Module } from '@nestjs/common';
import { GatewayModule } from '@antiphon/gateway-features';

/** What the gateway service is made of. */
@Module({ imports: [GatewayModule] })
export class AppModule {}
