import { Module } from '@nestjs/common';
import { AgentModule } from '@antiphon/agent-features';

/** What the agent service is made of. */
@Module({ imports: [AgentModule] })
export class AppModule {}
