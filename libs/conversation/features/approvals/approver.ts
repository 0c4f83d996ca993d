import { APPROVER_ROLES } from '@antiphon/contracts/agent';
import type { Approver, ApproverRole } from '@antiphon/contracts/agent';
import type { CallApproval } from '@antiphon/conversation-domain';
import { forbidden } from '@antiphon/kernel';

const rankOf = (role: Approver['role']): number => APPROVER_ROLES.indexOf(role as ApproverRole);

/** Throws for a credential that belongs to an agent. */
export const refuseAgents = ({ agentId }: Approver): void => {
  if (agentId !== null)
    throw forbidden('APPROVAL.AGENT_CANNOT_ANSWER', "an agent's own credential cannot answer an approval");
};

/**
 * Returns the approver's role. Throws for an agent's credential, and below the lowest allowed role:
 * that of the request, or that of its escalation.
 */
export const requireApprover = (
  approver: Approver,
  answerBy: ApproverRole,
  waiting: Pick<CallApproval, 'escalated'> | null,
): ApproverRole => {
  refuseAgents(approver);
  const { role } = approver;
  const escalated = waiting?.escalated ?? null;
  const least = Math.min(rankOf(answerBy), escalated === null ? Infinity : rankOf(escalated));
  if (rankOf(role) < least)
    throw forbidden('APPROVAL.ROLE_TOO_LOW', `this approval takes the role ${APPROVER_ROLES[least]}`, {
      data: { role, needed: APPROVER_ROLES[least] },
    });
  return role as ApproverRole;
};
