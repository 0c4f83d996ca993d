import { Controller, Inject } from '@nestjs/common';
import { branchChat, getChat, listChatBranches, type ChatView } from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import { CHAT_BRANCH_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { AgentAccess } from '../access/agent-access.js';
import { CurrentPrincipal, requireWorkspace } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { commonOf } from '../sessions/session-methods.js';

type Routes = typeof CHAT_BRANCH_ROUTES;

/** Serves branches of chats. */
@Controller()
export class ChatBranchesController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(AgentAccess) private readonly access: AgentAccess,
  ) {}

  @HandleRoute(CHAT_BRANCH_ROUTES.branchChat)
  async branch(
    { params, body, idempotencyKey }: RouteInput<Routes['branchChat']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<ChatView> {
    const { id: chat } = await this.find(principal, params);
    const { atMessage: turnId, ...more } = body;
    return this.requests.request(branchChat, {
      ...commonOf(principal),
      ...{ chat, turnId, ...more, idempotencyKey },
    });
  }

  @HandleRoute(CHAT_BRANCH_ROUTES.listChatBranches)
  async branches(
    { params, query }: RouteInput<Routes['listChatBranches']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof listChatBranches.reply>> {
    const { id: chat } = await this.find(principal, params);
    const { workspace } = principal;
    const page = await this.requests.request(listChatBranches, { workspace, chat, ...query });
    const { chats } = page;
    return { ...page, chats: await this.access.filter(principal, chats, ({ agentId }) => [agentId]) };
  }

  private async find(
    principal: Principal,
    params: { readonly id: string; readonly chat: string },
  ): Promise<ChatView> {
    requireWorkspace(principal, params.id);
    const { workspace } = principal;
    const chat = await this.requests.request(getChat, { workspace, chat: params.chat });
    await this.access.requireAny(principal, [chat.agentId]);
    return chat;
  }
}
