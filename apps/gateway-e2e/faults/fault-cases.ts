import type { FailpointName } from '@antiphon/kernel';

/** What the stack is doing when it comes by the point: a turn with a tool call, one whose call somebody is asked about, a run of two tasks, a run's cancel. */
export type Job = 'turn' | 'approval' | 'run' | 'cancel';

export interface FaultCase {
  readonly point: FailpointName;
  readonly job: Job;
}

const during = (job: Job, ...points: FailpointName[]): FaultCase[] => points.map((point) => ({ point, job }));

/** What is done at a point: the process dies, once or again at once, or it stands still and goes on as if nothing had been. */
export const FAULTS = ['kill9', 'kill9 twice', 'stop'] as const;
export type Fault = (typeof FAULTS)[number];

/** The sweep: each point with the job that comes by it; a spec holds it against the points in the source. */
export const FAULT_CASES: readonly FaultCase[] = [
  ...during('turn', 'gateway.command.received', 'gateway.command.accepted'),
  ...during('turn', 'agent.turn.claimed', 'agent.turn.accepted', 'agent.turn.assembled'),
  ...during('turn', 'agent.turn.reserved', 'agent.turn.dispatched', 'agent.turn.streamed'),
  ...during('turn', 'agent.turn.answered', 'agent.turn.recorded'),
  ...during('turn', 'agent.tool.requested', 'agent.tool.claimed', 'agent.tool.dispatched'),
  ...during('turn', 'agent.tool.answered', 'agent.tool.recorded'),
  ...during('turn', 'sandbox.call.taken', 'sandbox.call.returned'),
  ...during('turn', 'memory.context.asked', 'memory.context.assembled'),
  ...during('turn', 'metering.batch.taken', 'metering.batch.committed'),
  ...during('turn', 'log.batch.taken', 'log.batch.committed'),
  ...during('turn', 'projection.batch.read', 'projection.rows.written', 'projection.batch.committed'),
  ...during('turn', 'relay.batch.read', 'relay.batch.published'),
  ...during('approval', 'agent.approval.asked', 'agent.approval.answered'),
  ...during('run', 'agent.run.accepted', 'agent.run.begun'),
  ...during('run', 'agent.task.claimed', 'agent.task.submitted', 'agent.task.started'),
  ...during('run', 'agent.task.answered', 'agent.task.recorded'),
  ...during('cancel', 'agent.run.cancelled'),
];
