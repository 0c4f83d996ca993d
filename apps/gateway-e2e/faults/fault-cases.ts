import type { FailpointName } from '@antiphon/kernel';

/**
 * Work that reaches a failpoint: a turn with a tool call, the same with an approval, or one whose
 * answer does not fit. A run of two tasks, or a cancelled run. The life of a tree of two agents.
 */
export type Job = 'turn' | 'approval' | 'oversized' | 'run' | 'cancel' | 'agents';

export interface FaultCase {
  readonly point: FailpointName;
  readonly job: Job;
}

const during = (job: Job, ...points: FailpointName[]): FaultCase[] => points.map((point) => ({ point, job }));

/**
 * The process is killed once, killed again after its restart, or stopped for a while and continued.
 */
export const FAULTS = ['kill9', 'kill9 twice', 'stop'] as const;
export type Fault = (typeof FAULTS)[number];

/** Each failpoint with the job that reaches it. A spec compares the list with the source. */
export const FAULT_CASES: readonly FaultCase[] = [
  ...during('turn', 'gateway.command.received', 'gateway.command.accepted'),
  ...during('turn', 'agent.turn.claimed', 'agent.turn.accepted', 'agent.turn.assembled'),
  ...during('turn', 'agent.turn.reserved', 'agent.turn.dispatched', 'agent.turn.streamed'),
  ...during('turn', 'agent.turn.answered', 'agent.turn.recorded'),
  ...during('oversized', 'agent.turn.oversized'),
  ...during('turn', 'agent.tool.requested', 'agent.tool.claimed', 'agent.tool.dispatched'),
  ...during('turn', 'agent.tool.answered', 'agent.tool.recorded'),
  ...during('turn', 'sandbox.call.taken', 'sandbox.call.returned'),
  ...during('turn', 'memory.context.asked', 'memory.context.assembled'),
  ...during('turn', 'metering.batch.taken', 'metering.batch.committed'),
  ...during('turn', 'log.batch.taken', 'log.batch.committed'),
  ...during('turn', 'log.extension.taken', 'log.extension.committed'),
  ...during('turn', 'log.reservation.taken', 'log.reservation.committed'),
  ...during('turn', 'projection.batch.read', 'projection.rows.written', 'projection.batch.committed'),
  ...during('turn', 'relay.batch.read', 'relay.batch.published'),
  ...during('approval', 'agent.approval.asked', 'agent.approval.answered'),
  ...during('run', 'agent.run.accepted', 'agent.run.begun'),
  ...during('run', 'agent.task.claimed', 'agent.task.submitted', 'agent.task.started'),
  ...during('run', 'agent.task.answered', 'agent.task.recorded'),
  ...during('cancel', 'agent.run.cancelled'),
  ...during('agents', 'agent.spawn.budgeted', 'agent.spawn.recorded', 'agent.end.recorded'),
  ...during('agents', 'agent.message.sent', 'agent.inbox.read', 'agent.task.assigned'),
];
