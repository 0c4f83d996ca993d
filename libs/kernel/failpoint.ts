/** Points between the steps of a turn where the process that drives it may die (docs/fault-tests.md). */
export const TURN_FAILPOINTS = [
  'agent.turn.accepted',
  'agent.turn.claimed',
  'agent.turn.assembled',
  'agent.turn.reserved',
  'agent.turn.dispatched',
  'agent.turn.streamed',
  'agent.turn.answered',
  'agent.turn.recorded',
  'agent.tool.requested',
  'agent.tool.claimed',
  'agent.tool.dispatched',
  'agent.tool.answered',
  'agent.tool.recorded',
] as const;
export type TurnFailpoint = (typeof TURN_FAILPOINTS)[number];

/** Every point in the product where a test may break a process. */
export const FAILPOINTS = [
  ...TURN_FAILPOINTS,
  'gateway.command.received',
  'gateway.command.accepted',
  'agent.run.accepted',
  'agent.run.begun',
  'agent.run.cancelled',
  'agent.approval.asked',
  'agent.approval.answered',
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
  'projection.batch.read',
  'projection.rows.written',
  'projection.batch.committed',
  'relay.batch.read',
  'relay.batch.published',
] as const;
export type FailpointName = (typeof FAILPOINTS)[number];

/** What a point does once a test has armed it; whatever it does that is not to be undone, it does before it returns. */
export type FailpointAction = (name: FailpointName) => Promise<void>;

const PASSED = Promise.resolve();
let armed: FailpointAction | null = null;

/**
 * A step at which a test may kill, stop or delay this process, or fail the work (`FAILPOINTS`); else it does nothing.
 * A new one needs its name in the list above, and a case in the sweep's table (apps/gateway-e2e/faults/fault-cases.ts).
 */
export const failpoint = (name: FailpointName): Promise<void> => (armed === null ? PASSED : armed(name));

/** Called once by whoever starts the process; null disarms. */
export const armFailpoints = (action: FailpointAction | null): void => {
  armed = action;
};
