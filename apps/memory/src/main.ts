import { MemoryServiceModule } from '@antiphon/memory-features';
import { runService } from '@antiphon/service-host';

await runService({ service: 'memory', module: MemoryServiceModule, env: process.env });
