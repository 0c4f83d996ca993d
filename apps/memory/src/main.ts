import { runService } from '@antiphon/service-host';
import { AppModule } from './app.module.js';

await runService({ service: 'memory', module: AppModule, env: process.env });
