/** Points between the steps of a turn at which its driver may crash (docs/fault-tests.md). */
export const TURN_FAILPOINTS = [
  'agent.turn.accepted',
  'agent.turn.claimed',
  'agent.turn.assembled',
  'agent.turn.reserved',
  'agent.turn.dispatched',
  'agent.turn.streamed',
  'agent.turn.answered',
  /** The log has refused an outcome that does not fit, and its failure is not recorded yet. */
  'agent.turn.oversized',
  'agent.turn.recorded',
  'agent.tool.requested',
  'agent.tool.claimed',
  'agent.tool.dispatched',
  'agent.tool.answered',
  'agent.tool.recorded',
] as const;
export type TurnFailpoint = (typeof TURN_FAILPOINTS)[number];

/** Points between the steps of a restore (libs/platform/database/backup). */
export const RESTORE_FAILPOINTS = [
  'restore.lock.taken',
  'restore.schema.replaced',
  'restore.schema.migrated',
  'restore.table.filled',
  'restore.rows.written',
  'restore.rows.committed',
  'restore.derived.deleted',
  'restore.marker.removed',
  'restore.undo.begun',
] as const;

/** Points between the steps that write a tree to its folder (libs/files/features/disk). */
export const DISK_FAILPOINTS = ['files.disk.staged', 'files.disk.renamed', 'files.disk.synced'] as const;

/** Points between the bytes of a file and the fact that cites them (libs/files/features/trees). */
export const FILE_FAILPOINTS = ['agent.file.stored', 'agent.file.decided', 'agent.file.recorded'] as const;

/**
 * Points at which work is taken up, with a mark that names the work. A test kills each process that
 * reaches one (`apps/gateway-e2e/faults/lost-work.nightly.spec.ts`).
 */
export const WORK_FAILPOINTS = [
  'work.tool.begun',
  'work.plan.begun',
  'work.task.begun',
  'work.node.begun',
  'work.events.applied',
  'work.message.begun',
  'work.relay.begun',
  'work.folder.begun',
  'work.retry.begun',
  'work.call.begun',
  'work.call.permitted',
] as const;

/** Points of a call that a program outside runs (`apps/gateway-e2e/tools/remote-kills.ts`). */
export const REMOTE_FAILPOINTS = [
  'remote.call.permitted',
  'remote.call.sent',
  'remote.call.answered',
  'remote.call.ended',
] as const;

/** Every point in the product at which a test may break a process. */
export const FAILPOINTS = [
  ...TURN_FAILPOINTS,
  'gateway.command.received',
  'gateway.command.accepted',
  'agent.run.accepted',
  'agent.run.begun',
  'agent.run.cancelled',
  'agent.approval.asked',
  'agent.approval.answered',
  'agent.spawn.budgeted',
  'agent.spawn.recorded',
  'agent.end.recorded',
  'agent.message.sent',
  'agent.inbox.read',
  'agent.task.assigned',
  'agent.task.claimed',
  'agent.task.submitted',
  'agent.task.started',
  'agent.task.answered',
  'agent.task.recorded',
  'metering.batch.taken',
  'metering.batch.committed',
  'memory.context.asked',
  'memory.context.assembled',
  'sandbox.call.taken',
  'sandbox.call.returned',
  'log.batch.taken',
  'log.batch.committed',
  'log.extension.taken',
  'log.extension.committed',
  'log.reservation.taken',
  'log.reservation.committed',
  'projection.batch.read',
  'projection.rows.written',
  'projection.batch.committed',
  'relay.batch.read',
  'relay.batch.published',
  ...FILE_FAILPOINTS,
  ...RESTORE_FAILPOINTS,
  ...DISK_FAILPOINTS,
  ...WORK_FAILPOINTS,
  ...REMOTE_FAILPOINTS,
] as const;
export type FailpointName = (typeof FAILPOINTS)[number];

/** Action of an armed point. It completes its irreversible effects before it returns. */
export type FailpointAction = (name: FailpointName, mark: () => string) => Promise<void>;

const DISARMED = Promise.resolve();
const unmarked = (): string => '';
let armed: FailpointAction | null = null;

/**
 * Marks a step at which a test may kill, suspend or delay this process, or fail its work. `mark`
 * names the work, so that a test can choose it. Does
 * nothing unless a test has armed it. A new point needs a name in `FAILPOINTS`, and a case in the
 * sweep's table (apps/gateway-e2e/faults/fault-cases.ts).
 */
export const failpoint = (name: FailpointName, mark = unmarked): Promise<void> =>
  armed === null ? DISARMED : armed(name, mark);

/** Arms every point of this process; null disarms them. The start of the process calls it once. */
export const armFailpoints = (action: FailpointAction | null): void => {
  armed = action;
};
