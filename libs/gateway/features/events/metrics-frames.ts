import { SamplesStored, samplesSubject } from '@antiphon/contracts/agent';
import type { AgentFrame } from '@antiphon/contracts/gateway';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { MetricsOfAgents } from '../agents/metrics-of-agents.js';

export type MetricsFrame = Extract<AgentFrame, { type: 'agent.metrics' }>;

/** Receiver of the frames of a workspace. */
export interface MetricsReceiver {
  /** Returns false while no subscriber wants metrics. Then nothing is read. */
  readonly isWanted: () => boolean;
  readonly push: (frames: readonly MetricsFrame[]) => void;
}

/**
 * Follows notifications of stored samples. Each one causes one read of the agents that have a new
 * sample, for all subscribers of a workspace. Those that come while it runs cause one more.
 */
export class MetricsFrames {
  constructor(
    private readonly metrics: Pick<MetricsOfAgents, 'read'>,
    private readonly nats: Pick<NatsLink, 'connection'>,
    private readonly logger: Logger,
  ) {}

  /** Pushes frames until the returned function is called. */
  follow(workspace: string, receiver: MetricsReceiver): () => void {
    let isRunning = false;
    let next: string | null = null;
    const run = async (since: string): Promise<void> => {
      isRunning = true;
      for (let from: string | null = since; from !== null; from = next) {
        next = null;
        await this.#read(workspace, from, receiver);
      }
      isRunning = false;
    };
    const hear = ({ at }: SamplesStored): void => {
      if (!receiver.isWanted()) return;
      if (!isRunning) void run(at);
      else if (next === null || at < next) next = at;
    };
    const subscription = this.nats.connection.subscribe(samplesSubject(workspace), {
      callback: (_error, message) => {
        try {
          hear(SamplesStored.parse(message.json()));
        } catch (error) {
          this.logger.warn({ err: error }, 'samples notification failed');
        }
      },
    });
    return () => subscription.unsubscribe();
  }

  /** Reads and pushes the agents with a sample since a time. The next sample repairs a failure. */
  async #read(workspace: string, since: string, { push }: MetricsReceiver): Promise<void> {
    try {
      const { agents } = await this.metrics.read({ workspace, since }, { withCosts: true });
      push(
        agents.flatMap(({ agentId, latest, today }) =>
          latest && today ? [{ type: 'agent.metrics', agentId, latest, today }] : [],
        ),
      );
    } catch (error) {
      this.logger.warn({ err: error, workspace }, 'metrics frames failed');
    }
  }
}
