import type { Approver } from '@antiphon/contracts/agent';

/**
 * Who answers an approval at this gateway. Until keys tell callers apart, whoever passes the gate is the operator of this
 * installation; the agent judges the role, and refuses credentials that belong to an agent.
 */
export const approverAtTheGate = (): Approver => ({ caller: 'operator', role: 'admin', agentId: null });
