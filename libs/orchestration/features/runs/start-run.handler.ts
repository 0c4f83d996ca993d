import { Controller, Inject } from '@nestjs/common';
import { CLOCK, CONFIG, IDS, createToken } from '@antiphon/service-host';
import { RUN_STREAMS, WORKFLOW_STREAMS } from './run-streams.js';
import { startRun } from '@antiphon/contracts/agent';
import type { RunEvent } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { resolveInputs, runDecider, workflowDecider } from '@antiphon/orchestration-domain';
import type { WorkflowState } from '@antiphon/orchestration-domain';
import { workspaceConfig, type AntiphonConfig } from '@antiphon/config';
import { claimOf, retryConflicts } from '@antiphon/event-store';
import type { StateAt, StreamAppend } from '@antiphon/event-store';
import { failpoint, isoTime, toStorable } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { orderOf } from './parse-definition.js';
import { parseInThread } from './parse-in-thread.js';
import { workflowView } from './run-queries.handler.js';
import type { RunStreams, WorkflowStreams } from './run-streams.js';

type StartRunRequest = z.output<typeof startRun.request>;
type StartRunReply = z.output<typeof startRun.reply>;

/** Maximum number of rounds: a concurrent save or start changes the workflow's version. */
const MAX_ROUNDS = 20;

interface PlannedRun {
  readonly events: RunEvent[];
  /** Append to the workflow's event stream; none for a run of an inline definition. */
  readonly also: StreamAppend[];
}

const toStorableInputs = (inputs: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(inputs).map(([name, value]) => [name, toStorable(value)]));

/** Injection token of the `RunStarter`. */
export const RUN_STARTER = createToken<RunStarter>('RUN_STARTER');

/** Starts the Temporal workflow of a run that is in the log. */
export interface RunStarter {
  startRun(workspace: string, runId: string, firstAgent: string): void;
}

/** Starts a run. The run is in the log before its Temporal workflow starts. */
@Controller()
export class StartRun {
  constructor(
    @Inject(WORKFLOW_STREAMS) private readonly workflows: WorkflowStreams,
    @Inject(RUN_STREAMS) private readonly runs: RunStreams,
    @Inject(CONFIG) private readonly config: AntiphonConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(IDS) private readonly ids: Ids,
    @Inject(RUN_STARTER) private readonly starter: RunStarter,
  ) {}

  @HandleRequest(startRun)
  handle(request: StartRunRequest): Promise<StartRunReply> {
    return retryConflicts(() => this.start(request), { maxRounds: MAX_ROUNDS });
  }

  private async start(request: StartRunRequest): Promise<StartRunReply> {
    const runId = this.ids.next();
    const { events, also } = await this.plan(request, runId);
    const { caller, idempotencyKey: key, what, inputs } = request;
    const idempotency = claimOf(`${caller}/run.start`, key, { what, inputs }, { runId });
    const decision = { events, also, idempotency };
    const committed = await this.runs.commit(request.workspace, runId, () => decision);
    await failpoint('agent.run.accepted');
    const joined = committed.joined !== undefined;
    const startedId = joined ? String(committed.joined?.['runId']) : runId;
    // Also for a repeated request: the process that accepted it may have died before this line.
    this.starter.startRun(
      request.workspace,
      startedId,
      committed.state.started?.definition.nodes[0]?.agent ?? '',
    );
    return { runId: startedId, joined };
  }

  private async plan(request: StartRunRequest, runId: string): Promise<PlannedRun> {
    const { config, clock, workflows } = this;
    const { workspace, what } = request;
    const saved = 'workflowId' in what ? await workflows.read(workspace, what.workflowId) : null;
    const definition =
      saved === null
        ? await parseInThread(workspace, 'source' in what ? what.source : '')
        : workflowView(saved.state).definition;
    const also = saved === null ? [] : [this.recordStart(workspace, saved, runId)];
    orderOf(workspaceConfig(config, workspace), definition);
    const data = {
      runId,
      workflowId: saved?.state.workflowId ?? null,
      workflowVersion: saved?.state.version ?? null,
      definition,
      inputs: toStorableInputs(resolveInputs(definition, request.inputs)),
    };
    const command = { type: 'StartRun', data, now: isoTime(clock) } as const;
    return { events: runDecider.decide(command, runDecider.initialState()), also };
  }

  /** Returns the append that records the run in its workflow's event stream. */
  private recordStart(
    workspace: string,
    { state, version }: StateAt<WorkflowState>,
    runId: string,
  ): StreamAppend {
    const { clock, workflows } = this;
    const command = { type: 'NoteRunStarted', data: { runId }, now: isoTime(clock) } as const;
    const events = workflowDecider.decide(command, state);
    return workflows.appendOf(workspace, state.workflowId, version, events);
  }
}
