import type pg from 'pg';
import type { ApprovalRef, ApprovalTimer } from '@antiphon/agent-workflows';
import { waitingCall } from '@antiphon/agent-domain';
import type { CallApproval } from '@antiphon/agent-domain';
import { isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { commitApproval } from './commit-approval.js';
import { findApproval } from './find-approval.js';
import type { SessionLog } from '../sessions/session-log.js';
import type { SessionRegistry } from '../sessions/session-registry.js';

const dueAt = ({ escalateAt, expiresAt }: CallApproval): string =>
  escalateAt !== null && escalateAt < expiresAt ? escalateAt : expiresAt;

export interface TendApprovalDeps {
  readonly log: SessionLog;
  readonly clock: Clock;
}

export type TendApproval = (approval: ApprovalRef) => Promise<ApprovalTimer>;

/** Makes what `approval/<id>` has done each time: reads the log, records what is due, and says how long to wait. */
export const createTendApproval =
  (services: TendApprovalDeps, registry: SessionRegistry, pool: pg.Pool): TendApproval =>
  async ({ workspace, approvalId }) => {
    const found = await findApproval(pool, workspace, approvalId);
    if (!found) return { waitMs: null };
    const { sessionId } = found;
    const read = async () => {
      const { state } = await services.log.load(workspace, sessionId);
      return waitingCall(state, approvalId)?.approval ?? null;
    };
    let waiting = await read();
    const now = isoTime(services.clock);
    if (waiting && now >= dueAt(waiting)) {
      const command = { type: 'ApplyApprovalDeadlines', data: { approvalId }, now } as const;
      await commitApproval(services, registry, { workspace, sessionId }, command);
      waiting = await read();
    }
    if (!waiting) return { waitMs: null };
    return { waitMs: Math.max(1, Date.parse(dueAt(waiting)) - services.clock.now()) };
  };
