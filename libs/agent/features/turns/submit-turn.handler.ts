import { ATTEMPT_SPAN, submitTurn } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { followUps } from '@antiphon/agent-domain';
import type { SessionCommand } from '@antiphon/agent-domain';
import type { EventStore, IdempotencyClaim } from '@antiphon/event-store';
import { bug, createBoundedMap, isAppError, isoTime, toStorable } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import { runWithContextFields } from '@antiphon/observability';
import { eventMetadata } from '../event-envelope.js';
import { followUpContext } from './turn-policy.js';
import type { PolicyDeps } from './turn-policy.js';
import type { Failpoint } from './step-context.js';
import { digestOf } from '../derived-ids.js';
import type { LocalSession, SessionRegistry } from '../sessions/session-registry.js';
import type { Claim } from '../sessions/session-lease.js';
import type { Decision } from '../sessions/session-stream.js';
import { emptyFold } from '../sessions/session-fold.js';
import type { SessionFold } from '../sessions/session-fold.js';
import { bindKey, keyOf, readBinding, requireAgent } from '../sessions/session-keys.js';
import type { KeyBinding } from '../sessions/session-keys.js';

export type SubmitTurnRequest = z.output<typeof submitTurn.request>;
export type SubmitTurnReply = z.output<typeof submitTurn.reply>;
export type SubmitTurn = (request: SubmitTurnRequest) => Promise<SubmitTurnReply>;

export interface SubmitTurnDeps extends PolicyDeps {
  readonly store: EventStore;
  readonly failpoint: Failpoint;
}

/** Others may bind the same key, or take the session over, between a look and an append: then it is looked at again. */
const MAX_ROUNDS = 20;
/** Addresses whose session is remembered. */
const MAX_BOUND = 10_000;

/** The session that a turn is for: one that exists, or one that begins with it. */
interface Destination extends LocalSession {
  readonly claim: Claim;
  readonly beginning: {
    readonly sessionId: string;
    readonly sessionKey: string;
    readonly agentId: string;
    readonly previousSessionId?: string;
    readonly binding: KeyBinding;
  } | null;
}

type Accepted = Omit<SubmitTurnReply, 'joined'>;

interface Turn {
  readonly turnId: string;
  readonly content: string;
}

const isLostRace = (error: unknown): boolean =>
  isAppError(error) && (error.code === 'LOG.VERSION_CONFLICT' || error.code === 'LOG.FENCED');

/** An address whose conversation was archived begins a new one; what memory learned stays with the address. */
const unlessArchived = <T>(existing: Promise<T>): Promise<T | null> =>
  existing.catch((error: unknown) => {
    if (isAppError(error) && error.code === 'LOG.ARCHIVED') return null;
    throw error;
  });

const claimOf = (request: SubmitTurnRequest, answer: Accepted): { idempotency?: IdempotencyClaim } => {
  const { idempotencyKey: key, caller, target, content } = request;
  if (key === undefined) return {};
  const digest = digestOf({ target: target as JsonObject, content });
  return { idempotency: { scope: `${caller}/turn.submit`, key, digest, response: { ...answer } } };
};

/** Offset of the turn's `accepted` frame, if its first attempt begins in this append. */
const acceptedOffset = (turnId: string, events: readonly SessionEvent[]): number | null => {
  const begun = events.find((event) => event.type === 'ModelCallStarted' && event.data.turnId === turnId);
  return begun?.type === 'ModelCallStarted' ? begun.data.attempt * ATTEMPT_SPAN : null;
};

export const createSubmitTurn = (services: SubmitTurnDeps, registry: SessionRegistry): SubmitTurn => {
  const { config, store, ids, clock, log, failpoint } = services;
  const { decide, evolve } = log.decider;
  /** By workspace and session key; only for a head start, since another process may have bound the key anew. */
  const lastBound = createBoundedMap<string>(MAX_BOUND);

  const destination = async ({ workspace, target }: SubmitTurnRequest): Promise<Destination> => {
    if ('sessionId' in target)
      return { ...(await registry.requireSession(workspace, target.sessionId)), beginning: null };
    const agentId = requireAgent(config, target.address.agentId).id;
    const sessionKey = keyOf(target.address);
    const binding = await readBinding(store, workspace, sessionKey);
    if (binding.sessionId !== null) lastBound.put(`${workspace} ${sessionKey}`, binding.sessionId);
    const there =
      binding.sessionId === null
        ? null
        : await unlessArchived(registry.requireSession(workspace, binding.sessionId));
    if (there) return { ...there, beginning: null };
    const sessionId = ids.next();
    const session = registry.of(workspace, sessionId, emptyFold);
    const claim = await session.actor.claim();
    const previous = binding.sessionId === null ? {} : { previousSessionId: binding.sessionId };
    return { ...session, claim, beginning: { sessionId, sessionKey, agentId, binding, ...previous } };
  };

  const decideTurn = (
    { state }: SessionFold,
    turn: Turn,
    { actor, beginning }: Destination,
  ): SessionEvent[] => {
    const now = isoTime(clock);
    const commands: SessionCommand[] = [{ type: 'RequestTurn', data: turn, now }];
    if (beginning) {
      const { binding: _binding, ...data } = beginning;
      commands.unshift({ type: 'StartSession', data, now });
    }
    const events: SessionEvent[] = [];
    let next = state;
    for (const command of commands) {
      const decided = decide(command, next);
      events.push(...decided);
      next = decided.reduce(evolve, next);
    }
    // Only who drives the session may go on from here; the process that does is told.
    if (!actor.lease.held()) return events;
    return [...events, ...followUps(next, followUpContext(services, actor, next))];
  };

  const decideAll = (request: SubmitTurnRequest, turn: Turn, to: Destination, fold: SessionFold) => {
    const events = decideTurn(fold, turn, to);
    const answer: Accepted = {
      sessionId: to.actor.sessionId,
      turnId: turn.turnId,
      agentId: to.beginning?.agentId ?? requireAgent(config, fold.state.started?.agentId ?? '').id,
      version: fold.version + events.length,
      acceptedOffset: acceptedOffset(turn.turnId, events),
    };
    return { events, answer, ...alsoBind(to), ...claimOf(request, answer) };
  };
  const alsoBind = ({ beginning }: Destination): Pick<Decision, 'also'> => {
    if (!beginning) return {};
    const { binding, sessionKey, sessionId } = beginning;
    return { also: [bindKey(binding, sessionKey, sessionId, ids, eventMetadata())] };
  };

  /** Memory and tools are asked for while the request is being committed, if the turn will begin at once. */
  const prepare = (
    { actor, driver, beginning }: LocalSession & Partial<Pick<Destination, 'beginning'>>,
    turn: Turn,
  ): void => {
    const { state } = actor.fold();
    const session = beginning ?? state.started;
    if (actor.lease.held() && !state.open && session) driver.prepare({ ...turn, ...session });
  };

  const goOn = ({ actor, driver, claim }: Destination): void => {
    registry.wakeDriver({ actor, driver, claim });
  };

  /** The same before it is known whether the address still means this session: most often it does. */
  const prepareEarly = ({ workspace, target }: SubmitTurnRequest, turn: Turn): void => {
    if ('sessionId' in target) return;
    const sessionId = lastBound.get(`${workspace} ${keyOf(target.address)}`);
    const session = sessionId === undefined ? undefined : registry.atHand(workspace, sessionId);
    if (!sessionId || !session?.actor.known()) return;
    runWithContextFields({ sessionId, turnId: turn.turnId }, () => prepare(session, turn));
  };

  const submit = async (
    request: SubmitTurnRequest,
    turn: Turn,
    to: Destination,
  ): Promise<SubmitTurnReply> => {
    prepare(to, turn);
    await failpoint('agent.turn.claimed', to.actor.sessionId);
    const commit = await to.actor.commit((fold) => decideAll(request, turn, to, fold));
    await failpoint('agent.turn.accepted', to.actor.sessionId);
    goOn(to);
    if (commit.outcome === 'appended') return { ...commit.decision.answer, joined: false };
    if (commit.outcome === 'joined')
      return { ...submitTurn.reply.omit({ joined: true }).parse(commit.answer), joined: true };
    throw bug('TURN.NOT_REQUESTED', 'a turn was accepted without an event');
  };

  const abandon = async ({ beginning, actor }: Destination): Promise<void> => {
    if (beginning) await registry.forget(actor.workspace, actor.sessionId);
  };

  return async (request) => {
    const turn: Turn = { turnId: ids.next(), content: toStorable(request.content) };
    prepareEarly(request, turn);
    for (let round = 1; ; round++) {
      const to = await destination(request);
      try {
        const known = { sessionId: to.actor.sessionId, turnId: turn.turnId };
        const reply = await runWithContextFields(known, () => submit(request, turn, to));
        if (reply.joined) await abandon(to);
        return reply;
      } catch (error) {
        await abandon(to);
        if (!isLostRace(error) || round === MAX_ROUNDS) throw error;
      }
    }
  };
};
