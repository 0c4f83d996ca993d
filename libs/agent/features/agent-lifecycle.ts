import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import { ChannelPolls, ChannelSockets } from '@antiphon/channels-features';
import { FilesFollower } from '@antiphon/files-features';
import { PlansRuntime, RunWorker, TasksRuntime } from '@antiphon/orchestration-features';
import { observeGauges } from '@antiphon/observability';
import { MODELS } from '@antiphon/providers-features';
import type { Models } from '@antiphon/providers-features';
import { AgentWork } from './agent-work.js';

/** Starts and stops the work of the service in its order. */
@Injectable()
export class AgentLifecycle implements OnApplicationBootstrap, OnModuleDestroy {
  private stopObserving: () => void = () => undefined;

  constructor(
    @Inject(AgentWork) private readonly work: AgentWork,
    @Inject(RunWorker) private readonly runs: RunWorker,
    @Inject(TasksRuntime) private readonly tasks: TasksRuntime,
    @Inject(PlansRuntime) private readonly plans: PlansRuntime,
    @Inject(FilesFollower) private readonly files: FilesFollower,
    @Inject(ChannelPolls) private readonly polls: ChannelPolls,
    @Inject(ChannelSockets) private readonly sockets: ChannelSockets,
    @Inject(MODELS) private readonly models: Models,
  ) {}

  onApplicationBootstrap(): void {
    this.stopObserving = observeGauges(
      { antiphon_model_calls_waiting: 'Model calls that wait for a free place (concurrent_calls)' },
      (report) => report('antiphon_model_calls_waiting', this.models.countWaiting()),
    );
    // Recovered turns first: loading Temporal's SDK occupies the processor for a while.
    const resumed = this.work.start();
    this.runs.start(resumed);
    void resumed.then(() => {
      const { tasks, plans, files, polls, sockets } = this;
      for (const part of [tasks, plans, files, polls, sockets]) part.start();
    });
  }

  async onModuleDestroy(): Promise<void> {
    // First: work that starts now would submit a turn that this process no longer starts.
    const { tasks, plans, runs, files, polls, sockets } = this;
    await Promise.all([tasks, plans, runs, files, polls, sockets].map((part) => part.stop()));
    await this.work.stop();
    this.stopObserving();
    this.models.close();
  }
}
