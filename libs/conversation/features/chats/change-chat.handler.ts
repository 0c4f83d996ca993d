import { Controller, Inject } from '@nestjs/common';
import { CLOCK } from '@antiphon/service-host';
import { SESSION_LOG } from '../sessions/session-log.js';
import { SessionRegistry } from '../sessions/session-registry.js';
import { attachChatFile, changeMessage, detachChatFile, sessionStream } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import type { SessionCommand } from '@antiphon/conversation-domain';
import { claimOf, readBackwards } from '@antiphon/event-store';
import type { EventStore, IdempotencyClaim } from '@antiphon/event-store';
import { isAppError, isoTime, notFound, toStorable } from '@antiphon/kernel';
import type { Clock, JsonObject } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { requireOwnSession, AGENT_STORE, AgentDirectory } from '@antiphon/agents-features';
import type { SessionLog } from '../sessions/session-log.js';
import { TurnFiles } from '../turns/turn-files.js';

type ChangeRequest = z.output<typeof changeMessage.request>;
type AttachRequest = z.output<typeof attachChatFile.request>;
type DetachRequest = z.output<typeof detachChatFile.request>;

/** Events of one page of the search for an old turn. */
const PAGE = 500;
/** Maximum number of attempts: another process may take the session over before the append. */
const MAX_ROUNDS = 5;

const isFenced = (error: unknown): boolean => isAppError(error) && error.code === 'LOG.FENCED';

/** Changes the messages and the files of chats. */
@Controller()
export class ChangeChat {
  constructor(
    @Inject(SessionRegistry) private readonly registry: SessionRegistry,
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(SESSION_LOG) private readonly log: SessionLog,
    @Inject(TurnFiles) private readonly files: TurnFiles,
    @Inject(AGENT_STORE) private readonly store: EventStore,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** Edits or deletes a message. The first text stays in the log. */
  @HandleRequest(changeMessage)
  async change(request: ChangeRequest): Promise<z.output<typeof changeMessage.reply>> {
    const { turnId, part, caller: actor, content } = request;
    const changed = { turnId, part, actor };
    const command =
      content === null
        ? ({ type: 'DeleteMessage', data: changed } as const)
        : ({ type: 'EditMessage', data: { ...changed, content: toStorable(content) } } as const);
    return this.commit(request, { ...command, now: isoTime(this.clock) }, (ended) =>
      ended.includes(turnId) ? Promise.resolve() : this.requireTurn(request),
    );
  }

  /**
   * Attaches the bytes that a file has now. Later changes of the file do not change them. Throws
   * `CHAT.FILE_NOT_FOUND`, and `MEDIA.…` for an image or a document that models cannot get.
   */
  @HandleRequest(attachChatFile)
  async attach(request: AttachRequest): Promise<z.output<typeof attachChatFile.reply>> {
    const { workspace, caller: actor } = request;
    const file = await this.files.find(workspace, request.path);
    const data = { ...file, actor };
    const command = { type: 'AttachFile', data, now: isoTime(this.clock) } as const;
    return this.commit(request, command, () => Promise.resolve());
  }

  /** Takes a file away from later turns. */
  @HandleRequest(detachChatFile)
  async detach(request: DetachRequest): Promise<z.output<typeof detachChatFile.reply>> {
    const data = { path: request.path.normalize('NFC'), actor: request.caller };
    const command = { type: 'DetachFile', data, now: isoTime(this.clock) } as const;
    return this.commit(request, command, () => Promise.resolve());
  }

  private async commit(
    request: ChangeRequest | AttachRequest | DetachRequest,
    command: SessionCommand,
    check: (ended: readonly string[]) => Promise<void>,
  ): Promise<z.output<typeof changeMessage.reply>> {
    const { registry, log } = this;
    const { workspace, chatId, sessionId } = request;
    for (let round = 1; ; round++) {
      const session = await registry.requireSession(workspace, sessionId);
      const { actor } = session;
      await requireOwnSession(this.agents, request, actor.fold().state.started?.agentId ?? '');
      await check(actor.fold().state.ended.map(({ turnId }) => turnId));
      try {
        const committed = await actor.commit((fold) => {
          const events = log.decider.decide(command, fold.state);
          const reply = { chatId, version: fold.version + events.length };
          return { events, reply, idempotency: this.claimOfChange(request, reply) };
        });
        registry.wakeDriver(session);
        if (committed.outcome === 'appended') return committed.decision.reply;
        if (committed.outcome === 'joined') return changeMessage.reply.parse(committed.answer);
        return { chatId, version: actor.fold().version };
      } catch (error) {
        if (!isFenced(error) || round === MAX_ROUNDS) throw error;
      }
    }
  }

  private claimOfChange(
    request: ChangeRequest | AttachRequest | DetachRequest,
    reply: JsonObject,
  ): IdempotencyClaim | undefined {
    const { workspace: _workspace, caller, callerAgent: _agent, idempotencyKey: key, ...subject } = request;
    return claimOf(`${caller}/chat.change`, key, subject, reply);
  }

  /** Reads the log for a turn that is too old for the fold. Throws `CHAT.MESSAGE_NOT_FOUND`. */
  private async requireTurn({ workspace, sessionId, turnId }: ChangeRequest): Promise<void> {
    const stream = sessionStream(sessionId);
    for await (const { type, data } of readBackwards(this.store, workspace, stream, PAGE))
      if (type === 'TurnRequested' && data['turnId'] === turnId) return;
    throw notFound('CHAT.MESSAGE_NOT_FOUND', `this chat has no message of the turn ${turnId}`);
  }
}
