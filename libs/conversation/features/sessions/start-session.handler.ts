import { Controller, Inject } from '@nestjs/common';
import { CLOCK, IDS } from '@antiphon/service-host';
import { SESSION_LOG } from './session-log.js';
import { SessionRegistry } from './session-registry.js';
import { newSession, sessionStream } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import type { SessionCommand } from '@antiphon/conversation-domain';
import { claimOf, createFactLog, retryConflicts } from '@antiphon/event-store';
import type { EventStore, NewEvent } from '@antiphon/event-store';
import { isoTime } from '@antiphon/kernel';
import type { Clock, Ids, JsonObject } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { requireOwnSession, AGENT_STORE, AgentDirectory } from '@antiphon/agents-features';
import { eventMetadata } from '@antiphon/agent-log';
import { requireChatOfSession } from './session-chat.js';
import { bindKey, keyOf, readBinding } from './session-keys.js';
import type { SessionLog } from './session-log.js';

export type StartSessionRequest = z.output<typeof newSession.request>;
export type StartSessionReply = z.output<typeof newSession.reply>;

/**
 * Maximum number of attempts: other processes may bind the same key between the read and the
 * append.
 */
const MAX_ROUNDS = 20;

/** Handles `cmd.agent.session.new`: binds the key to a new session. The previous session stays. */
@Controller()
export class StartSession {
  constructor(
    @Inject(SessionRegistry) private readonly registry: SessionRegistry,
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(SESSION_LOG) private readonly log: SessionLog,
    @Inject(AGENT_STORE) private readonly store: EventStore,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(IDS) private readonly ids: Ids,
  ) {}

  @HandleRequest(newSession)
  handle(request: StartSessionRequest): Promise<StartSessionReply> {
    return retryConflicts(() => this.start(request), { maxRounds: MAX_ROUNDS });
  }

  private async start(request: StartSessionRequest): Promise<StartSessionReply> {
    const { agents, store, ids, clock } = this;
    const { workspace, caller, target, idempotencyKey: key } = request;
    const { agentId, sessionKey } = await this.resolveTarget(request);
    await agents.require(workspace, agentId);
    await requireOwnSession(agents, request, agentId);
    const guard = await requireChatOfSession(store, workspace, sessionKey);
    const binding = await readBinding(store, workspace, sessionKey);
    const sessionId = ids.next();
    const previous = binding.sessionId === null ? {} : { previousSessionId: binding.sessionId };
    const data = { sessionId, sessionKey, agentId, ...previous };
    const response = { sessionId, sessionKey, agentId, previousSessionId: binding.sessionId };
    const events = this.toEvents({ type: 'StartSession', data, now: isoTime(clock) });
    const sessions = createFactLog(store, (_workspace, id) => sessionStream(id));
    const result = await sessions.appendAt(workspace, sessionId, 0, events, {
      also: [bindKey(binding, sessionKey, sessionId, ids, eventMetadata())],
      idempotency: claimOf(`${caller}/session.new`, key, { target }, response),
      guards: guard ? [guard] : [],
    });
    return result.outcome === 'joined' ? newSession.reply.parse(result.response) : response;
  }

  private async resolveTarget({
    workspace,
    target,
  }: StartSessionRequest): Promise<{ agentId: string; sessionKey: string }> {
    if ('address' in target) return { agentId: target.address.agentId, sessionKey: keyOf(target.address) };
    const { actor } = await this.registry.requireSession(workspace, target.sessionId);
    const { started } = actor.fold().state;
    return { agentId: started?.agentId ?? '', sessionKey: started?.sessionKey ?? '' };
  }

  private toEvents(command: Extract<SessionCommand, { type: 'StartSession' }>): NewEvent[] {
    const { log, ids } = this;
    return log.decider.decide(command, log.decider.initialState()).map(({ type, schemaVersion, data }) => ({
      eventId: ids.next(),
      type,
      schemaVersion,
      data: data as unknown as JsonObject,
      metadata: eventMetadata(),
    }));
  }
}
