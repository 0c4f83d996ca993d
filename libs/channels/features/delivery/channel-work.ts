import { backoffMs, isFinal, MAX_ATTEMPTS, readAnswer } from '@antiphon/channels-domain';
import type { AnswerVerdict, Delivery, DeliveryCommand } from '@antiphon/channels-domain';
import { readOutcome } from '@antiphon/conversation-features';
import type { TurnEndWatcher, TurnOutcome } from '@antiphon/conversation-features';
import type { EventStore } from '@antiphon/event-store';
import { isAppError } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { Channel, ChannelDirectory } from '../settings/channel-directory.js';
import type { ApprovalButtons } from './approval-buttons.js';
import type { BeginTurn } from './begin-turn.js';
import type { ChannelPlugin, SendOutcome } from './channel-plugin.js';
import type { DeliveryRef, DeliveryStreams } from './delivery-streams.js';

/** State of a delivery: over, or due for its next step in `waitMs`. */
export interface DeliveryProgress {
  readonly over: boolean;
  readonly waitMs: number;
}

/** Time after which an attempt without an outcome is lost, ms: longer than any request. */
const LOST_AFTER_MS = 30_000;
/** Age up to which the sandbox knows how an attempt ended, ms: less than it keeps them. */
const KNOWN_FOR_MS = 20 * 24 * 3_600_000;
const MAX_CODE = 100;

export interface ChannelWorkDeps {
  readonly streams: DeliveryStreams;
  readonly directory: ChannelDirectory;
  readonly plugin: ChannelPlugin;
  readonly beginTurn: BeginTurn;
  readonly approvals: Pick<ApprovalButtons, 'isUsed' | 'showUntilEnd'>;
  readonly turnEnds: Pick<TurnEndWatcher, 'waitForEnd'>;
  readonly store: Pick<EventStore, 'readStreamPage'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Name of this process. */
  readonly owner: string;
}

/** Returns the text of a reply, for a person on a platform. */
export const textOfOutcome = (outcome: TurnOutcome): string => {
  if (outcome.kind === 'completed') return outcome.text;
  return outcome.kind === 'failed' ? `The agent could not answer (${outcome.code}).` : '';
};

const KINDS = { completed: 'answer', failed: 'failed', cancelled: 'cancelled' } as const;

type SettledOutcome = Exclude<SendOutcome, { readonly outcome: 'open' }>;

interface Versioned {
  readonly delivery: Delivery;
  /** Version of the stream. */
  readonly version: number;
}

/** An open attempt is the last fact of its stream: the version names it, also after a replay. */
const sendKeyOf = ({ messageId }: DeliveryRef, version: number): string => `${messageId}.${version}`;

const DONE: DeliveryProgress = { over: true, waitMs: 0 };

/** Returns the command that records the outcome of an attempt. */
const toCommand = (
  verdict: AnswerVerdict,
  at: { readonly messageId: string; readonly part: number; readonly attempt: number },
  { status, now, clock }: { readonly status: number | null; readonly now: string; readonly clock: Clock },
): DeliveryCommand => {
  switch (verdict.kind) {
    case 'sent': {
      const { platformId } = verdict;
      return { type: 'Succeed', data: { ...at, via: 'request', platformId }, now };
    }
    case 'unknown':
      return { type: 'Lose', data: { ...at, code: verdict.code }, now };
    case 'refused': {
      const { code, detail } = verdict;
      return { type: 'Fail', data: { ...at, code, status, detail }, now };
    }
    case 'later': {
      if (at.attempt >= MAX_ATTEMPTS)
        return { type: 'Fail', data: { ...at, code: verdict.code, status, detail: null }, now };
      const waitMs = verdict.afterMs ?? backoffMs(at.attempt);
      const retryAt = new Date(clock.now() + waitMs).toISOString();
      return { type: 'Delay', data: { ...at, code: verdict.code, status, retryAt }, now };
    }
  }
};

/**
 * Takes a delivery to its end: the turn, its answer, and the messages on the platform. Each step is
 * a fact, and every process may do the next one.
 */
export class ChannelWork {
  constructor(private readonly deps: ChannelWorkDeps) {}

  /** Does the steps that are due. Rejects if one cannot be done now. */
  async advance(ref: DeliveryRef, signal: AbortSignal): Promise<DeliveryProgress> {
    for (;;) {
      const { state: delivery, version } = await this.deps.streams.read(ref);
      if (version === 0) return DONE;
      if (isFinal(delivery)) return this.finish(ref, delivery);
      const waitMs = await this.step(ref, { delivery, version }, signal);
      if (waitMs > 0) return { over: false, waitMs };
    }
  }

  /** Removes the credential of the reply, if the platform gave one. */
  private async finish({ workspace, messageId }: DeliveryRef, delivery: Delivery): Promise<DeliveryProgress> {
    const config = this.deps.directory.find(workspace, delivery.channel);
    if (config !== null) await this.deps.directory.removeReplySecret(config, messageId);
    return DONE;
  }

  /** Waits for the answer of a turn and queues it. */
  async queueAnswer(
    ref: DeliveryRef,
    channel: Channel,
    delivery: Delivery,
    signal: AbortSignal,
  ): Promise<Delivery> {
    const { approvals } = this.deps;
    if (approvals.isUsed(channel))
      await approvals.showUntilEnd(ref, channel, delivery, signal, (one) => this.advance(one, signal));
    const outcome = await this.waitForOutcome(ref, delivery, signal);
    if (outcome === null) return delivery;
    return this.deps.beginTurn.queue(ref, channel, KINDS[outcome.kind], textOfOutcome(outcome));
  }

  /** Waits for the outcome of the turn of a delivery; null without a turn. */
  async waitForOutcome(
    { workspace }: DeliveryRef,
    { turn }: Delivery,
    signal: AbortSignal,
  ): Promise<TurnOutcome | null> {
    if (turn === null) return null;
    const { sessionId, turnId } = turn;
    await this.deps.turnEnds.waitForEnd({ workspace, sessionId, turnId }, signal);
    return readOutcome(this.deps.store, { workspace, sessionId, turnId });
  }

  /** Does one step. Returns the milliseconds until the next one. */
  private async step(
    ref: DeliveryRef,
    { delivery, version }: Versioned,
    signal: AbortSignal,
  ): Promise<number> {
    const { directory, beginTurn } = this.deps;
    const config = directory.find(ref.workspace, delivery.channel);
    if (config === null) return this.giveUp(ref, delivery, 'CHANNEL.NOT_FOUND');
    const channel = await directory.open(config);
    switch (delivery.state) {
      case 'received':
        await beginTurn.begin(ref, channel, delivery);
        return 0;
      case 'answering':
        await this.queueAnswer(ref, channel, delivery, signal);
        return 0;
      case 'sending':
        return this.checkOpen(ref, channel, { delivery, version });
      default:
        return this.send(ref, channel, delivery);
    }
  }

  /** Ends a delivery of a channel that the configuration no longer has. */
  private async giveUp(
    { messageId, ...ref }: DeliveryRef,
    delivery: Delivery,
    code: string,
  ): Promise<number> {
    const at = { messageId, part: delivery.part, attempt: delivery.attempts + 1 };
    const { owner } = this.deps;
    await this.deps.streams.commit({ ...ref, messageId }, (state, now) => {
      const end = { type: 'Fail', data: { ...at, code, status: null, detail: null }, now } as const;
      if (state.state === 'queued') return [{ type: 'Attempt', data: { messageId, by: owner }, now }, end];
      if (state.state === 'sending')
        return { type: 'Lose', data: { ...at, attempt: state.attempts, code }, now };
      return { type: 'QueueReply', data: { messageId, kind: 'refused', parts: [] }, now };
    });
    return 0;
  }

  /** Another process may still wait. After its time, the sandbox tells the outcome. */
  private async checkOpen(
    ref: DeliveryRef,
    channel: Channel,
    { delivery, version }: Versioned,
  ): Promise<number> {
    const { clock, streams, plugin } = this.deps;
    const startedAt = Date.parse(delivery.open?.at ?? '');
    const age = clock.now() - startedAt;
    if (age < LOST_AFTER_MS) return LOST_AFTER_MS - age;
    const at = { messageId: ref.messageId, part: delivery.part, attempt: delivery.attempts };
    const outcome: SettledOutcome =
      age < KNOWN_FOR_MS
        ? await plugin.settle(ref.workspace, sendKeyOf(ref, version))
        : { outcome: 'unknown', reason: 'too old' };
    await streams.commit(ref, (_, now) => this.judge(channel, outcome, at, now));
    return 0;
  }

  /** A platform with idempotency shows a repeated part once. Any other may show it twice. */
  private lost(
    { plugin }: Channel,
    at: { readonly messageId: string; readonly part: number; readonly attempt: number },
    now: string,
  ): DeliveryCommand {
    const code = 'CHANNEL.OUTCOME_LOST';
    if (!plugin.description.idempotent) return { type: 'Lose', data: { ...at, code }, now };
    return toCommand({ kind: 'later', code, afterMs: null }, at, {
      ...{ status: null, now, clock: this.deps.clock },
    });
  }

  private async send(ref: DeliveryRef, channel: Channel, delivery: Delivery): Promise<number> {
    const { streams, plugin, clock, owner, logger } = this.deps;
    const { messageId } = ref;
    const waitMs = delivery.retryAt === null ? 0 : Date.parse(delivery.retryAt) - clock.now();
    if (waitMs > 0) return waitMs;
    const { message, parts, part, account } = delivery;
    const approvalId = delivery.approval?.approvalId ?? null;
    const text = parts[part];
    if (message === null || text === undefined) return 0;
    const outgoing = { messageId, message, account, text, approvalId, part, parts: parts.length };
    const formatted = await plugin.formatRequest(channel, outgoing);
    const claimed = await this.claim(ref, part);
    if (claimed === null) return 0;
    const at = { messageId, part, attempt: claimed.attempt };
    const outcome: SendOutcome = formatted.ok
      ? await plugin.send(channel, formatted.value, { messageId, part }, sendKeyOf(ref, claimed.version))
      : { outcome: 'refused', reason: formatted.code };
    // The next look at the open attempt settles it.
    if (outcome.outcome === 'open') return 0;
    await streams.commit(ref, (_, now) => this.judge(channel, outcome, at, now));
    logger.debug({ channel: channel.config.name, owner, ...at }, 'channel part sent');
    return 0;
  }

  /** Claims the part. Returns the attempt, or null if another process was first. */
  private async claim(
    ref: DeliveryRef,
    part: number,
  ): Promise<{ readonly attempt: number; readonly version: number } | null> {
    const { streams, owner } = this.deps;
    const { messageId } = ref;
    try {
      const { state, version, isAppended } = await streams.commit(ref, (delivery, now) =>
        delivery.part === part ? { type: 'Attempt', data: { messageId, by: owner }, now } : null,
      );
      return isAppended ? { attempt: state.attempts, version } : null;
    } catch (error) {
      if (isAppError(error) && error.kind === 'rejected') return null;
      throw error;
    }
  }

  private judge(
    channel: Channel,
    outcome: SettledOutcome,
    at: { readonly messageId: string; readonly part: number; readonly attempt: number },
    now: string,
  ): DeliveryCommand {
    const { clock } = this.deps;
    switch (outcome.outcome) {
      case 'answered': {
        const verdict = readAnswer(outcome, channel.plugin.description.answer);
        if (verdict.kind === 'unknown') return this.lost(channel, at, now);
        return toCommand(verdict, at, { status: outcome.status, now, clock });
      }
      case 'refused': {
        const code = /^[A-Z]+\.[A-Z_]+$/.test(outcome.reason) ? outcome.reason : 'CHANNEL.REQUEST_REFUSED';
        const detail = outcome.reason.replaceAll(/\p{Cc}/gu, ' ').slice(0, 300);
        return { type: 'Fail', data: { ...at, code, status: null, detail }, now };
      }
      case 'unreached': {
        const code = outcome.code.slice(0, MAX_CODE);
        return toCommand({ kind: 'later', code, afterMs: null }, at, { status: null, now, clock });
      }
      case 'unknown':
        return this.lost(channel, at, now);
    }
  }
}
