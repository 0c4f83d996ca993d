import { Controller, Inject } from '@nestjs/common';
import { CLOCK, IDS } from '@antiphon/service-host';
import { cancelRun } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { runDecider } from '@antiphon/orchestration-domain';
import type { RunState } from '@antiphon/orchestration-domain';
import { failpoint, isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { TURN_COMMANDS } from '@antiphon/conversation-features';
import type { TurnCommands } from '@antiphon/conversation-features';
import { requireRunStatus } from './run-queries.handler.js';
import { runEndAppends, RUN_STREAMS } from './run-streams.js';
import type { RunStreams } from './run-streams.js';

/** Cancels the turns of a run's running tasks. An ended turn stays as it is. */
export const cancelTurnsOf = async (
  turns: Pick<TurnCommands, 'cancelTurn'>,
  workspace: string,
  { tasks, started }: RunState,
): Promise<void> => {
  const caller = `run/${started?.runId ?? ''}`;
  const cancels = [...tasks.values()].flatMap(({ status, sessionId, turnId }) =>
    status === 'running' && sessionId !== null && turnId !== null
      ? [turns.cancelTurn({ workspace, sessionId, turnId, caller })]
      : [],
  );
  await Promise.all(cancels);
};

/**
 * Cancels a run: records the request, then cancels the running turns. Their ends end the tasks, and
 * so the run. After a crash in between, the reconciler cancels the turns.
 */
@Controller()
export class CancelRun {
  constructor(
    @Inject(RUN_STREAMS) private readonly runs: RunStreams,
    @Inject(CLOCK) readonly clock: Clock,
    @Inject(IDS) readonly ids: Ids,
    @Inject(TURN_COMMANDS) private readonly turns: Pick<TurnCommands, 'cancelTurn'>,
  ) {}

  @HandleRequest(cancelRun)
  async handle({
    workspace,
    runId,
  }: z.output<typeof cancelRun.request>): Promise<z.output<typeof cancelRun.reply>> {
    let wasOpen = false;
    const { state } = await this.runs.commit(workspace, runId, ({ state: before }) => {
      const status = requireRunStatus(before);
      wasOpen = status === 'running' || status === 'cancelling';
      const now = isoTime(this.clock);
      const events = runDecider.decide({ type: 'CancelRun', data: {}, now }, before);
      return { events, also: runEndAppends(this, before, events) };
    });
    await failpoint('agent.run.cancelled');
    await cancelTurnsOf(this.turns, workspace, state);
    return { cancelled: wasOpen, status: requireRunStatus(state) };
  }
}
