import { AgentModule } from '@antiphon/agent-features';
import { MemoryServiceModule } from '@antiphon/memory-features';
import { MeteringModule } from '@antiphon/metering-features';
import { readHostedEnvironments, runService } from '@antiphon/service-host';

const environments = readHostedEnvironments(process.env);

/**
 * The agent service with memory and metering in its process, the form of `npm start -- --compact`.
 * Each hosted service keeps its module, database role and NATS credential (docs/adr/0165).
 */
await runService({
  service: 'agent',
  module: AgentModule,
  env: process.env,
  temporal: true,
  streams: ['LIVE'],
  hosts: [
    { service: 'memory', module: MemoryServiceModule, env: environments('memory') },
    { service: 'metering', module: MeteringModule, env: environments('metering'), streams: ['DLQ'] },
  ],
});
