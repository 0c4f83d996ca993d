import type { AgentActor } from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import type { z } from 'zod';

/** Returns a principal as the actor of a change of agents, tasks or messages. */
export const actorOf = ({ caller, role, agentId }: Principal): z.input<typeof AgentActor> => ({
  caller,
  role,
  agentId,
});
