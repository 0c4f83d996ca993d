import { configureGatewayHttp } from '@antiphon/gateway-features';
import { runService } from '@antiphon/service-host';
import { AppModule } from './app.module.js';

await runService({
  service: 'gateway',
  module: AppModule,
  env: process.env,
  configure: configureGatewayHttp,
});
