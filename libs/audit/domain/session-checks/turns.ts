import type { SessionEvent } from '@antiphon/contracts/agent';
import { isTurnEnd, open, violation } from '../audit-check.js';
import type { EventPlace, Finding, Parsed, SessionCheck } from '../audit-check.js';

interface Turn {
  readonly at: EventPlace;
  cancelled: boolean;
}

const STARTS: ReadonlySet<string> = new Set<SessionEvent['type']>(['ModelCallStarted', 'ToolCallRequested']);

/** Every turn that was accepted ends exactly once; turns run one after another, in the order accepted. */
export const turnsEndOnce: SessionCheck = {
  name: 'turns-end-once',
  about:
    'every accepted turn ends exactly once, in the order accepted, and nothing starts in one that was cancelled',
  counts: 'turns',
  start: () => {
    /** Accepted and not ended, oldest first: a Map keeps the order of insertion. */
    const running = new Map<string, Turn>();
    const ended = new Set<string>();
    let turns = 0;

    const accept = (turnId: string, at: EventPlace): Finding[] => {
      if (running.has(turnId) || ended.has(turnId))
        return [violation(at, `turn ${turnId} was accepted twice`)];
      running.set(turnId, { at, cancelled: false });
      turns++;
      return [];
    };
    const finish = (turnId: string, at: EventPlace): Finding[] => {
      if (ended.has(turnId)) return [violation(at, `turn ${turnId} ended twice`)];
      ended.add(turnId);
      return running.delete(turnId)
        ? []
        : [violation(at, `turn ${turnId} ended without having been accepted`)];
    };
    const go = (type: string, turnId: string, at: EventPlace): Finding[] => {
      const turn = running.get(turnId);
      if (ended.has(turnId)) return [violation(at, `${type} of turn ${turnId} came after its end`)];
      if (!turn) return [violation(at, `${type} names turn ${turnId}, which was not accepted`)];
      if (running.keys().next().value !== turnId)
        return [violation(at, `${type} of turn ${turnId} came while an earlier turn was not at its end`)];
      return turn.cancelled && STARTS.has(type)
        ? [violation(at, `${type} of turn ${turnId} came after it was asked to be cancelled`)]
        : [];
    };
    const see = ({ place, content: { type, data } }: Parsed<SessionEvent>): Finding[] => {
      if (type === 'SessionStarted' || type === 'SessionForked') return [];
      const { turnId } = data;
      if (type === 'TurnRequested') return accept(turnId, place);
      if (type === 'TurnCancelRequested') {
        const turn = running.get(turnId);
        if (turn) turn.cancelled = true;
        return ended.has(turnId) || turn
          ? []
          : [violation(place, `turn ${turnId} was cancelled without having been accepted`)];
      }
      return isTurnEnd(type) ? finish(turnId, place) : go(type, turnId, place);
    };
    return {
      see,
      end: () => [...running].map(([turnId, { at }]) => open(at, `turn ${turnId} has not ended`)),
      count: () => turns,
    };
  },
};
