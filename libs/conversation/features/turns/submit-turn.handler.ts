import { Controller, Inject } from '@nestjs/common';
import type { Ids } from '@antiphon/kernel';
import { IDS } from '@antiphon/service-host';
import { LEASE_OWNER } from '@antiphon/agents-features';
import { FAILPOINT } from './step-context.js';
import { SessionRegistry } from '../sessions/session-registry.js';
import { TurnFiles } from './turn-files.js';
import { ATTEMPT_SPAN, submitTurn } from '@antiphon/contracts/agent';
import type { AgentHop, MessageFile, SessionEvent, TurnRole } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { followUps } from '@antiphon/conversation-domain';
import type { SessionCommand, SessionState } from '@antiphon/conversation-domain';
import { claimOf, isVersionConflict } from '@antiphon/event-store';
import type { StreamGuard } from '@antiphon/event-store';
import { bug, isAppError } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { recordTurnStage, runWithContextFields } from '@antiphon/observability';
import { eventMetadata } from '@antiphon/agent-log';
import type { SessionFold } from '../sessions/session-fold.js';
import { bindKey } from '../sessions/session-keys.js';
import type { LocalSession } from '../sessions/local-session.js';
import type { Decision } from '../sessions/session-stream.js';
import { MessageReceiver } from './receive-messages.js';
import { TargetResolver } from './resolve-target.js';
import type { Destination, NewSession } from './resolve-target.js';
import type { Failpoint } from './step-context.js';
import { TurnPolicy } from './turn-policy.js';

export type SubmitTurnRequest = z.output<typeof submitTurn.request>;
export type SubmitTurnReply = z.output<typeof submitTurn.reply>;

/**
 * Maximum number of attempts: another process may bind the key or take the session over before the
 * append.
 */
const MAX_ROUNDS = 20;

type Accepted = Omit<SubmitTurnReply, 'joined' | 'driver'>;

/** An answer in the log: the process that drives the session may have changed since. */
const Joined = submitTurn.reply.omit({ joined: true, driver: true });

interface Turn {
  readonly turnId: string;
  readonly content: string;
  readonly files?: readonly MessageFile[];
  /** Requests from agent to agent that led to the turn. */
  readonly chain: AgentHop[];
  readonly role: TurnRole | null;
  readonly caller: string;
}

/** A refusal that was decided for a cached binding: the key may have another session by now. */
const isRefusal = (error: unknown): boolean =>
  isAppError(error) && !['transient', 'bug'].includes(error.kind);

const isLostRace = (error: unknown): boolean =>
  isVersionConflict(error) || (isAppError(error) && error.code === 'LOG.FENCED');

/**
 * Returns the offset of the turn's `accepted` frame, if its first attempt starts in this append.
 */
const acceptedOffset = (turnId: string, events: readonly SessionEvent[]): number | null => {
  const started = events.find((event) => event.type === 'ModelCallStarted' && event.data.turnId === turnId);
  return started?.type === 'ModelCallStarted' ? started.data.attempt * ATTEMPT_SPAN : null;
};

/**
 * Handles `cmd.agent.turn.submit`: accepts a turn with one append and wakes the session's driver.
 */
@Controller()
export class SubmitTurn {
  constructor(
    @Inject(TargetResolver) private readonly targets: TargetResolver,
    @Inject(TurnPolicy) private readonly policy: TurnPolicy,
    @Inject(MessageReceiver) private readonly receiver: MessageReceiver,
    @Inject(TurnFiles) private readonly files: TurnFiles,
    @Inject(SessionRegistry) private readonly registry: SessionRegistry,
    @Inject(FAILPOINT) private readonly failpoint: Failpoint,
    @Inject(LEASE_OWNER) private readonly owner: string,
    @Inject(IDS) private readonly ids: Ids,
  ) {}

  @HandleRequest(submitTurn)
  async handle(request: SubmitTurnRequest, chain: AgentHop[] = []): Promise<SubmitTurnReply> {
    const turn: Turn = {
      turnId: this.ids.next(),
      ...(await this.files.resolve(request.workspace, request.content)),
      chain,
      role: null,
      caller: request.caller,
    };
    this.prefetchEarly(request, turn);
    let stageAt = performance.now();
    for (let round = 1; ; round++) {
      const destination = await this.targets.resolve(request, round === 1);
      stageAt = recordTurnStage('session_resolved', stageAt);
      try {
        const known = { sessionId: destination.actor.sessionId, turnId: turn.turnId };
        const reply = await runWithContextFields(known, () =>
          this.submit(request, turn, destination, stageAt),
        );
        if (reply.joined) await this.targets.discard(destination);
        return reply;
      } catch (error) {
        await this.targets.discard(destination);
        const mayRepeat =
          isLostRace(error) || (destination.guard !== null && destination.mayUseCache && isRefusal(error));
        if (!mayRepeat || round === MAX_ROUNDS) throw error;
      }
    }
  }

  private async submit(
    request: SubmitTurnRequest,
    turn: Turn,
    destination: Destination,
    resolvedAt: number,
  ): Promise<SubmitTurnReply> {
    const { failpoint, registry } = this;
    const { actor } = destination;
    this.prefetch(destination, turn, destination.created);
    await failpoint('agent.turn.claimed', actor.sessionId);
    const [{ role, guard }] = await Promise.all([
      this.roleOf(request.workspace, destination),
      this.checkInbox(request.workspace, destination),
    ]);
    let sentAt = resolvedAt;
    const commit = await actor.commit((fold) => {
      sentAt = recordTurnStage('append_sent', sentAt);
      const guards = [destination.guard, guard].filter((one) => one !== null);
      return { ...this.decide(request, { ...turn, role }, destination, fold), guards };
    });
    recordTurnStage('turn_committed', sentAt);
    await failpoint('agent.turn.accepted', actor.sessionId);
    registry.wakeDriver(destination);
    if (commit.outcome === 'appended') this.targets.remember(request.workspace, destination);
    const driver = this.driverOf(destination);
    if (commit.outcome === 'appended') return { ...commit.decision.answer, joined: false, driver };
    if (commit.outcome === 'joined') return { ...Joined.parse(commit.answer), joined: true, driver };
    throw bug('TURN.NOT_REQUESTED', 'a turn was accepted without an event');
  }

  /** Returns the process that drives the session, as far as this one knows. */
  private driverOf({ actor, claim }: Destination): string | null {
    if (actor.lease.held()) return this.owner;
    return claim.owned ? null : claim.owner;
  }

  /** Returns the version of the agent's role file that the turn begins with. */
  private async roleOf(
    workspace: string,
    { created, actor, mayUseCache }: Destination,
  ): Promise<{ readonly role: TurnRole | null; readonly guard: StreamGuard | null }> {
    const { roles } = this.files;
    const agentId = created?.agentId ?? actor.fold().state.started?.agentId;
    if (agentId === undefined) return { role: null, guard: null };
    const cached = mayUseCache ? await roles.findCached(workspace, agentId) : null;
    return cached ?? { role: await roles.find(workspace, agentId), guard: null };
  }

  /** A failure leaves the check to the driver, which begins the call after the commit then. */
  private async checkInbox(workspace: string, { created, actor }: Destination): Promise<void> {
    const agentId = created?.agentId ?? actor.fold().state.started?.agentId;
    if (agentId !== undefined) await this.receiver.check(workspace, agentId).catch(() => undefined);
  }

  private decide(
    request: SubmitTurnRequest,
    turn: Turn,
    { actor, driver, created }: Destination,
    fold: SessionFold,
  ): Decision & { readonly answer: Accepted } {
    const { events, state } = this.decideEvents(fold, turn, actor, created);
    const begun = acceptedOffset(turn.turnId, events);
    const isHeld = begun === null && this.policy.of(request.workspace, state)?.halt === 'paused';
    const answer: Accepted = {
      sessionId: actor.sessionId,
      turnId: turn.turnId,
      agentId: created?.agentId ?? fold.state.started?.agentId ?? '',
      version: fold.version + events.length,
      acceptedOffset: begun,
      ...(isHeld ? { waitsAfter: fold.cursor.lastOffset } : {}),
    };
    const { caller, idempotencyKey: key, target, content } = request;
    const idempotency = claimOf(`${caller}/turn.submit`, key, { target, content }, answer);
    return {
      ...{ events, answer, ...this.bindingOf(created), idempotency },
      ...(begun !== null ? driver.reserveInCommit(state) : {}),
    };
  }

  private decideEvents(
    { state }: SessionFold,
    turn: Turn,
    actor: Destination['actor'],
    created: NewSession | null,
  ): { readonly events: SessionEvent[]; readonly state: SessionState } {
    const { decider } = this.policy;
    const now = this.policy.now();
    const commands: SessionCommand[] = [{ type: 'RequestTurn', data: turn, now }];
    if (created) {
      const { binding: _binding, ...data } = created;
      commands.unshift({ type: 'StartSession', data, now });
    }
    const events: SessionEvent[] = [];
    let next = state;
    for (const command of commands) {
      const decided = decider.decide(command, next);
      events.push(...decided);
      next = decided.reduce(decider.evolve, next);
    }
    // Only the process that drives the session may start the turn. It is notified after the commit.
    if (!actor.lease.held()) return { events, state: next };
    const following = followUps(next, this.policy.contextOf(actor, next));
    return { events: [...events, ...following], state: following.reduce(decider.evolve, next) };
  }

  private bindingOf(created: NewSession | null): Pick<Decision, 'also'> {
    if (!created) return {};
    const { binding, sessionKey, sessionId } = created;
    return { also: [bindKey(binding, sessionKey, sessionId, this.ids, eventMetadata())] };
  }

  /**
   * Requests the turn's context before it is known whether the address still has this session. It
   * usually has.
   */
  private prefetchEarly({ workspace, target }: SubmitTurnRequest, turn: Turn): void {
    if ('sessionId' in target) return;
    const session = this.targets.findCached(workspace, target.address);
    if (!session) return;
    const { sessionId } = session.actor;
    runWithContextFields({ sessionId, turnId: turn.turnId }, () => this.prefetch(session, turn, null));
  }

  /**
   * Requests the turn's context while the request is being committed, if the turn will start at
   * once.
   */
  private prefetch({ actor, driver }: LocalSession, turn: Turn, created: NewSession | null): void {
    const { state } = actor.fold();
    const session = created ?? state.started;
    if (actor.lease.held() && !state.open && session) driver.prefetchContext({ ...turn, ...session });
  }
}
