import type { SessionEvent } from '@antiphon/contracts/agent';
import { type CheckRun, type EventPlace, type Finding, isTurnEnd, open, violation } from '../audit-check.js';
import type { Parsed, SessionCheck } from '../audit-check.js';

/** Checks that a session's event stream begins with its one SessionStarted and has its name. */
export const sessionsBeginOnce: SessionCheck = {
  name: 'sessions-begin-once',
  about: 'every session’s event stream begins with its one SessionStarted',
  counts: 'sessions',
  start: () => {
    let hasBegun = false;
    let sessions = 0;
    return {
      see: ({ place, content }) => {
        const isFirst = !hasBegun;
        // A missing start is reported once.
        hasBegun = true;
        if (content.type !== 'SessionStarted')
          return isFirst ? [violation(place, `${content.type} came before SessionStarted`)] : [];
        sessions++;
        if (!isFirst) return [violation(place, 'the session began twice')];
        return place.streamId === `session-${content.data.sessionId}`
          ? []
          : [violation(place, `the session names itself ${content.data.sessionId}`)];
      },
      end: () => [],
      count: () => sessions,
    };
  },
};

/** Checks that lease epochs only grow along a session: no driver appends after its successor. */
export const leaseEpochsGrow: SessionCheck = {
  name: 'lease-epochs-grow',
  about: 'no driver appended to a session after its successor had',
  counts: 'events under a lease',
  start: () => {
    let highest = 0;
    let events = 0;
    return {
      see: ({ place, epoch }) => {
        if (epoch === undefined) return [];
        events++;
        if (epoch < highest) return [violation(place, `epoch ${epoch} appended after epoch ${highest}`)];
        highest = epoch;
        return [];
      },
      end: () => [],
      count: () => events,
    };
  },
};

interface Turn {
  readonly at: EventPlace;
  isCancelled: boolean;
}

const STARTS: ReadonlySet<string> = new Set<SessionEvent['type']>(['ModelCallStarted', 'ToolCallRequested']);

class TurnRun implements CheckRun<Parsed<SessionEvent>> {
  /** Accepted turns that have not ended, oldest first (a Map keeps the order of insertion). */
  private readonly running = new Map<string, Turn>();
  private readonly ended = new Set<string>();
  private turns = 0;

  see({ place, content: { type, data } }: Parsed<SessionEvent>): Finding[] {
    if (type === 'SessionStarted' || type === 'SessionForked') return [];
    if (type === 'ChatFileAttached' || type === 'ChatFileDetached') return [];
    const { turnId } = data;
    if (type === 'ChatMessageEdited' || type === 'ChatMessageDeleted')
      return this.checkChange(type, turnId, place);
    if (type === 'TurnRequested') return this.accept(turnId, place);
    if (type === 'TurnCancelRequested') return this.cancel(turnId, place);
    return isTurnEnd(type) ? this.finish(turnId, place) : this.checkStep(type, turnId, place);
  }

  end(): Finding[] {
    return [...this.running].map(([turnId, { at }]) => open(at, `turn ${turnId} has not ended`));
  }

  count(): number {
    return this.turns;
  }

  private accept(turnId: string, at: EventPlace): Finding[] {
    if (this.running.has(turnId) || this.ended.has(turnId))
      return [violation(at, `turn ${turnId} was accepted twice`)];
    this.running.set(turnId, { at, isCancelled: false });
    this.turns++;
    return [];
  }

  private cancel(turnId: string, at: EventPlace): Finding[] {
    const turn = this.running.get(turnId);
    if (turn) turn.isCancelled = true;
    return turn || this.ended.has(turnId)
      ? []
      : [violation(at, `turn ${turnId} was cancelled but never accepted`)];
  }

  private finish(turnId: string, at: EventPlace): Finding[] {
    if (this.ended.has(turnId)) return [violation(at, `turn ${turnId} ended twice`)];
    this.ended.add(turnId);
    return this.running.delete(turnId) ? [] : [violation(at, `turn ${turnId} ended but was never accepted`)];
  }

  /** A message is changed only after its turn has ended. */
  private checkChange(type: string, turnId: string, at: EventPlace): Finding[] {
    return this.ended.has(turnId) ? [] : [violation(at, `${type} of turn ${turnId}, which has not ended`)];
  }

  private checkStep(type: string, turnId: string, at: EventPlace): Finding[] {
    const turn = this.running.get(turnId);
    if (this.ended.has(turnId)) return [violation(at, `${type} of turn ${turnId} came after its end`)];
    if (!turn) return [violation(at, `${type} names turn ${turnId}, which was not accepted`)];
    // Turns wait for their agent together.
    if (type !== 'TurnBlocked' && this.running.keys().next().value !== turnId)
      return [violation(at, `${type} of turn ${turnId} came before the end of an earlier turn`)];
    return turn.isCancelled && STARTS.has(type)
      ? [violation(at, `${type} of turn ${turnId} came after the request to cancel it`)]
      : [];
  }
}

/** Checks that every accepted turn ends once, and that turns run one after another. */
export const turnsEndOnce: SessionCheck = {
  name: 'turns-end-once',
  about:
    'every accepted turn ends exactly once, in the order accepted, and nothing starts in a cancelled turn',
  counts: 'turns',
  start: () => new TurnRun(),
};
