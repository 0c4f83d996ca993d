import { runService } from '@antiphon/service-host';
import { AppModule } from './app.module.js';

await runService({ service: 'metering', module: AppModule, env: process.env, streams: ['DLQ'] });
