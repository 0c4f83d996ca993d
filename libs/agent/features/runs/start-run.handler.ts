import { workflowStream } from '@antiphon/contracts/agent';
import type { RunEvent, startRun } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { resolveInputs, runDecider, workflowDecider } from '@antiphon/agent-domain';
import type { WorkflowState } from '@antiphon/agent-domain';
import type { StreamAppend } from '@antiphon/event-store';
import { failpoint, isAppError, isoTime, toStorable } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import { digestOf } from '../derived-ids.js';
import { toNewEvent } from './run-streams.js';
import type { WorkflowServices } from './workflow-services.js';
import { workflowView } from './workflow-view.js';
import { orderOf } from './judge-definition.js';
import { parseDefinition } from './parse-definition.js';

export type StartRunRequest = z.output<typeof startRun.request>;
export type StartRunReply = z.output<typeof startRun.reply>;
export type StartRun = (request: StartRunRequest) => Promise<StartRunReply>;

/** Somebody may save the workflow, or start it too, between the look and the append. */
const MAX_ROUNDS = 20;

interface Planned {
  readonly events: RunEvent[];
  /** What the workflow's own event stream says of it. */
  readonly also: StreamAppend[];
}

const storable = (inputs: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(inputs).map(([name, value]) => [name, toStorable(value)]));

const claimOf = ({ caller, what, inputs, idempotencyKey: key }: StartRunRequest, runId: string) => {
  if (key === undefined) return {};
  const digest = digestOf({ what: what as JsonObject, inputs });
  return { idempotency: { scope: `${caller}/run.start`, key, digest, response: { runId } } };
};

/**
 * Makes the use case behind `cmd.agent.run.start`: the run is a fact before Temporal hears of it.
 * @param begun called with each run that was accepted, again when it is joined; what it does may fail, for the reconciler does it again
 */
export const createStartRun = (
  services: WorkflowServices,
  begun: (workspace: string, runId: string, firstAgent: string) => void,
): StartRun => {
  const { config, clock, ids, workflows } = services;

  const noteIn = (workflow: WorkflowState, version: number, runId: string): StreamAppend => {
    const command = { type: 'NoteRunStarted', data: { runId }, now: isoTime(clock) } as const;
    const events = workflowDecider.decide(command, workflow).map((event) => toNewEvent(event, ids));
    return { streamId: workflowStream(workflow.workflowId), expectedVersion: version, events };
  };

  const plan = async (request: StartRunRequest, runId: string): Promise<Planned> => {
    const { workspace, what } = request;
    const saved = 'workflowId' in what ? await workflows.read(workspace, what.workflowId) : null;
    const definition =
      saved === null
        ? parseDefinition('source' in what ? what.source : '')
        : workflowView(saved.state).definition;
    const also = saved === null ? [] : [noteIn(saved.state, saved.version, runId)];
    orderOf(config, definition);
    const data = {
      runId,
      workflowId: saved?.state.workflowId ?? null,
      workflowVersion: saved?.state.version ?? null,
      definition,
      inputs: storable(resolveInputs(definition, request.inputs)),
    };
    const command = { type: 'StartRun', data, now: isoTime(clock) } as const;
    return { events: runDecider.decide(command, runDecider.initialState()), also };
  };

  const start = async (request: StartRunRequest): Promise<StartRunReply> => {
    const runId = ids.next();
    const { events, also } = await plan(request, runId);
    const committed = await services.runs.commit(request.workspace, runId, () => ({
      events,
      also,
      ...claimOf(request, runId),
    }));
    await failpoint('agent.run.accepted');
    const joined = committed.joined !== undefined;
    const startedId = joined ? String(committed.joined?.['runId']) : runId;
    // Also when it was there: who accepted it may have died before it could tell Temporal.
    begun(request.workspace, startedId, committed.state.started?.definition.nodes[0]?.agent ?? '');
    return { runId: startedId, joined };
  };

  return async (request) => {
    for (let round = 1; ; round++) {
      try {
        return await start(request);
      } catch (error) {
        if (!isAppError(error) || error.code !== 'LOG.VERSION_CONFLICT' || round === MAX_ROUNDS) throw error;
      }
    }
  };
};
