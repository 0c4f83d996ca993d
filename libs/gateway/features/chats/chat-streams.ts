import {
  approvalFrames,
  ATTEMPT_SPAN,
  attemptOf,
  sessionStream,
  type ApprovalEvent,
  type ApprovalFrame,
  type ChatView,
  type FrameCursor,
} from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import { translateDatabaseError } from '@antiphon/database';
import { readBackwards } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import { conflict, exhausted, isAppError } from '@antiphon/kernel';
import { keepContext, type Logger } from '@antiphon/observability';
import type { Pool } from 'pg';
import type { Identities } from '../access/identities.port.js';
import type { FrameLog } from '../frames/frame-log.js';
import type { SessionFeeds } from '../frames/session-feeds.js';
import { offsetOfEventId, toEventId } from './chat-cursor.js';
import { ChatPipe, PIPE_LIMITS, type PipeLimits } from './chat-pipe.js';

export interface ChatStreamsDeps {
  readonly feeds: SessionFeeds;
  readonly frameLog: FrameLog;
  readonly store: Pick<EventStore, 'readStreamPage'>;
  readonly pool: Pool;
  readonly identities: Identities;
  readonly logger: Logger;
  readonly limits?: PipeLimits;
}

interface StreamRequest {
  readonly principal: Principal;
  readonly chat: ChatView;
  /** Id of the last event that the reader has; undefined for all events. */
  readonly lastEventId: string | undefined;
  /** Where a reader without an id begins. Default: at the start. */
  readonly from?: 'start' | 'end';
}

/** Maximum number of streams that a gateway serves. */
const MAX_STREAMS = 10_000;
const EPOCH_SQL = 'select epoch from log_head where id = 1';
const PAGE = 64;

const CLOSES: ReadonlySet<string> = new Set([
  'ApprovalGranted',
  'ApprovalDenied',
  'ApprovalExpired',
  'ApprovalVoided',
]);

/** Returns the offset before the running attempt, or the last offset where no turn is open. */
const placeAtEnd = ({ attempt, lastOffset, openTurnId }: FrameCursor): number =>
  openTurnId === null ? lastOffset : Math.max(0, attempt * ATTEMPT_SPAN - 1);

/** Streams of events of chats. Each follows the session's frames like a WebSocket does. */
export class ChatStreams {
  readonly #deps: ChatStreamsDeps;
  readonly #open = new Set<ChatPipe>();

  constructor(deps: ChatStreamsDeps) {
    this.#deps = deps;
  }

  /** Returns the epoch of the log, which is part of every event id. */
  async readEpoch(): Promise<number> {
    const { rows } = await this.#deps.pool.query<{ epoch: string }>(EPOCH_SQL).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    return Number(rows[0]?.epoch ?? 1);
  }

  /**
   * Opens a stream after an event. Throws `CHAT.CURSOR_MALFORMED`, `CHAT.CURSOR_FOREIGN`,
   * `GATEWAY.EPOCH_CHANGED`, `GATEWAY.OFFSET_AHEAD` and `LOG.ARCHIVED` before anything is sent.
   */
  async open({ principal, chat, lastEventId, from = 'start' }: StreamRequest): Promise<ChatPipe> {
    if (this.#open.size >= MAX_STREAMS)
      throw exhausted('CHAT.TOO_MANY_STREAMS', `this gateway serves ${MAX_STREAMS} streams already`);
    const { workspace } = principal;
    const { sessionId } = chat;
    const epoch = await this.readEpoch();
    const given = lastEventId === undefined ? 0 : offsetOfEventId(lastEventId, { epoch, sessionId });
    const end = await this.#requireOffset(workspace, sessionId, given);
    const offset = lastEventId === undefined && from === 'end' ? placeAtEnd(end) : given;
    const approvals = offset === 0 ? [] : await this.#openApprovals(workspace, sessionId, end.openTurnId);
    const pipe = new ChatPipe({ epoch, sessionId, offset }, this.#deps.limits ?? PIPE_LIMITS);
    const cursor = lastEventId === undefined ? 'absent' : 'resumed';
    pipe.send('ready', { chatId: chat.id, sessionId, cursor }, toEventId({ epoch, sessionId, offset }));
    for (const [event, data] of approvals) pipe.send(event, { ...(data as object), again: true });
    this.#follow(pipe, principal, sessionId, offset);
    return pipe;
  }

  /** Ends all streams. Their readers resume at another gateway. */
  close(): void {
    for (const pipe of this.#open) pipe.finish();
  }

  #follow(pipe: ChatPipe, principal: Principal, sessionId: string, after: number): void {
    const { feeds, identities, logger } = this.#deps;
    const { workspace, keyId } = principal;
    const inRequest = keepContext({ sessionId });
    const unfollow = feeds.follow({
      ...{ workspace, sessionId, after, catchUp: true },
      deliver: (frame) => pipe.deliver(frame),
      waitForRoom: () => pipe.waitForRoom(),
      onError: (error) => {
        inRequest(() => logger.error({ err: error, sessionId }, 'chat catch-up failed'));
        if (!isAppError(error) || error.kind !== 'transient') pipe.finish();
      },
    });
    const unwatch = identities.watch(principal, () => {
      inRequest(() => logger.info({ sessionId, keyId }, 'chat credential ended'));
      pipe.finish();
    });
    this.#open.add(pipe);
    pipe.once('close', () => {
      this.#open.delete(pipe);
      unfollow();
      unwatch();
    });
  }

  /** Returns the end of the frames. An attempt is in the log before its first frame is sent. */
  async #requireOffset(workspace: string, sessionId: string, offset: number): Promise<FrameCursor> {
    const end = await this.#deps.frameLog.end(workspace, sessionId);
    const { attempt, lastOffset } = end;
    if (attemptOf(offset) <= attempt) return end;
    const message =
      'this event id is ahead of the chat: send the last id that you got, or none for all events';
    throw conflict('GATEWAY.OFFSET_AHEAD', message, { data: { lastOffset } });
  }

  /** Returns the frames of the approvals that the open turn waits for. */
  async #openApprovals(
    workspace: string,
    sessionId: string,
    openTurnId: string | null,
  ): Promise<ApprovalFrame[]> {
    if (openTurnId === null) return [];
    const closed = new Set<unknown>();
    const frames: ApprovalFrame[] = [];
    for await (const event of readBackwards(this.#deps.store, workspace, sessionStream(sessionId), PAGE)) {
      const { type, data } = event;
      if (type === 'TurnRequested' && data['turnId'] === openTurnId) break;
      if (CLOSES.has(type)) closed.add(data['approvalId']);
      if (type === 'ApprovalRequested' && data['turnId'] === openTurnId && !closed.has(data['approvalId']))
        frames.unshift(...approvalFrames(event as unknown as ApprovalEvent));
    }
    return frames;
  }
}
