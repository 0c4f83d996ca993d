import { MemoryServiceModule } from '@antiphon/memory-features';
import { ADOPT_ROOTS, runAdoptRoots, runService } from '@antiphon/service-host';

const [command, ...args] = process.argv.slice(2);

if (command === ADOPT_ROOTS) await runAdoptRoots(process.env, args);
else await runService({ service: 'memory', module: MemoryServiceModule, env: process.env });
