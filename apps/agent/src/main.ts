import { AgentModule } from '@antiphon/agent-features';
import { runService } from '@antiphon/service-host';

await runService({
  service: 'agent',
  module: AgentModule,
  env: process.env,
  temporal: true,
  streams: ['LIVE'],
});
