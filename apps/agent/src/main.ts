import { runService } from '@antiphon/service-host';
import { AppModule } from './app.module.js';

await runService({
  service: 'agent',
  module: AppModule,
  env: process.env,
  temporal: true,
  streams: ['LIVE'],
});
