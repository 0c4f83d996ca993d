import { Module } from '@nestjs/common';
import { GatewayModule } from '@antiphon/gateway-features';

/** Module of the gateway service. */
@Module({ imports: [GatewayModule] })
export class AppModule {}
