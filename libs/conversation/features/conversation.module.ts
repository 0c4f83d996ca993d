import { Global, Module } from '@nestjs/common';
import { AGENT_STORE, AgentDirectory, SpawnAgent } from '@antiphon/agents-features';
import { FileTrees, VIRTUAL_FILES } from '@antiphon/files-features';
import * as platform from '@antiphon/service-host';
import { provide, provideClass } from '@antiphon/service-host';
import { AnswerApproval } from './approvals/answer-approval.handler.js';
import { CheckApproval } from './approvals/check-approval.handler.js';
import { ApprovalDeadlines } from './approvals/approval-timers.js';
import { ReadApprovals } from './approvals/read-approvals.handler.js';
import { BranchChat } from './chats/branch-chat.handler.js';
import { ChatStarter } from './chats/chat-starter.js';
import { ChatStore } from './chats/chat-store.js';
import { ChangeChat } from './chats/change-chat.handler.js';
import { Chats } from './chats/chats.handler.js';
import { ListChats } from './chats/list-chats.handler.js';
import { RenameChat } from './chats/rename-chat.handler.js';
import { RoleAgents } from './chats/role-agents.js';
import { VirtualChats } from './chats/virtual-chats.js';
import * as tokens from './conversation.tokens.js';
import { ForkSession } from './sessions/fork-session.handler.js';
import { ReadSessions } from './sessions/read-sessions.handler.js';
import { SessionRegistry } from './sessions/session-registry.js';
import { StartSession } from './sessions/start-session.handler.js';
import { ListTools } from './catalog/list-tools.handler.js';
import { BeginCall } from './turns/begin-call.handler.js';
import { CancelTurn } from './turns/cancel-turn.handler.js';
import { ListTurnsOfEntry } from './turns/entry-turns.handler.js';
import { SubmitTurn } from './turns/submit-turn.handler.js';
import { ReadTurnContext } from './turns/turn-context.handler.js';

import { sessionProviders } from './session-providers.js';
import { turnProviders } from './turn-providers.js';
const { CLOCK, CONFIG, DATABASE_POOL, EVENT_STORE, IDS } = platform;
const { SESSION_LOG } = tokens;

const chats = [
  provide(
    ChatStore,
    [DATABASE_POOL, AGENT_STORE, IDS],
    (pool, store, ids) => new ChatStore(pool, store, ids),
  ),
  provide(VIRTUAL_FILES, [ChatStore, EVENT_STORE], (store, log) => new VirtualChats(store, log)),
  provideClass(RoleAgents, {
    spawner: SpawnAgent,
    agents: AgentDirectory,
    config: CONFIG,
    store: AGENT_STORE,
    clock: CLOCK,
    ids: IDS,
    files: FileTrees,
  }),
];

const handlers = [
  AnswerApproval,
  BeginCall,
  BranchChat,
  CancelTurn,
  ChangeChat,
  Chats,
  CheckApproval,
  ListChats,
  ForkSession,
  ListTools,
  ListTurnsOfEntry,
  ReadApprovals,
  ReadSessions,
  ReadTurnContext,
  RenameChat,
  StartSession,
  SubmitTurn,
];
const deadlines = provideClass(ApprovalDeadlines, {
  log: SESSION_LOG,
  registry: SessionRegistry,
  pool: DATABASE_POOL,
  clock: CLOCK,
});
const providers = [...handlers, ChatStarter, ...sessionProviders, ...turnProviders, ...chats, deadlines];

/** Conversations with agents: sessions, turns, approvals and chats. */
@Global()
@Module({ controllers: handlers, providers, exports: providers })
export class ConversationModule {}
