import type { SessionAddress } from '@antiphon/contracts/agent';
import type { ChatSendParams } from '@antiphon/contracts/gateway';
import type { Router } from '@antiphon/gateway-domain';

/** Where a message goes: the agent that it names, else the one that the bindings choose. */
export const addressOf = (router: Router, params: Omit<ChatSendParams, 'content'>): SessionAddress => {
  const { channel, account, peer, guild, team, agent } = params;
  const agentId = agent ?? router.route({ channel, account, peer, guild, team });
  return { agentId, channel, account, peer };
};
