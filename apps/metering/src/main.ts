import { MeteringModule } from '@antiphon/metering-features';
import { runService } from '@antiphon/service-host';

await runService({ service: 'metering', module: MeteringModule, env: process.env, streams: ['DLQ'] });
