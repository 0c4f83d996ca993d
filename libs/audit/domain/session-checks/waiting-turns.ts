import type { SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import { type CheckRun, type EventPlace, type Finding, isTurnEnd, violation } from '../audit-check.js';
import type { Parsed, SessionCheck } from '../audit-check.js';

/** Time within which a process takes a turn up that may continue, ms. */
export const TAKEN_UP_WITHIN_MS = 600_000;

interface Waiting {
  readonly turnId: string;
  readonly at: EventPlace;
  /** Time since which it may continue. It waits behind the turns before it until then. */
  since: string;
  /** Reason of its wait, if it is recorded. A person ends it where `until` is null. */
  blocked: Pick<SessionEventOf<'TurnBlocked'>['data'], 'code' | 'until'> | null;
  isTakenUp: boolean;
}

const latest = (a: string, b: string): string => (a > b ? a : b);

class WaitRun implements CheckRun<Parsed<SessionEvent>> {
  /** Open turns, in the order accepted. */
  private turns: Waiting[] = [];
  private accepted = 0;

  /** `deadline` is the time since which no turn may wait, ISO 8601. */
  constructor(private readonly deadline: string) {}

  see({ place: at, content: event, recordedAt: since = '' }: Parsed<SessionEvent>): Finding[] {
    if (event.type === 'TurnRequested') {
      this.accepted++;
      this.turns.push({ turnId: event.data.turnId, at, since, blocked: null, isTakenUp: false });
    } else if (event.type === 'ModelCallStarted')
      this.change(event.data.turnId, { isTakenUp: true, blocked: null });
    else if (event.type === 'TurnBlocked') {
      const { turnId, code, until } = event.data;
      this.change(turnId, { since, blocked: { code, until }, isTakenUp: false });
    } else if (isTurnEnd(event.type)) this.finish((event.data as { readonly turnId: string }).turnId, since);
    return [];
  }

  end(): Finding[] {
    const [first] = this.turns;
    if (!first || first.isTakenUp || first.blocked?.until === null) return [];
    const since = latest(first.since, first.blocked?.until ?? '');
    if (since >= this.deadline) return [];
    const why = first.blocked ? ` for the end of ${first.blocked.code}` : '';
    return [
      violation(first.at, `turn ${first.turnId} waits${why} since ${since}, and no process has taken it up`),
    ];
  }

  count(): number {
    return this.accepted;
  }

  private change(turnId: string, change: Partial<Waiting>): void {
    const turn = this.turns.find((open) => open.turnId === turnId);
    if (turn) Object.assign(turn, change);
  }

  private finish(turnId: string, at: string): void {
    this.turns = this.turns.filter((open) => open.turnId !== turnId);
    const [next] = this.turns;
    if (next) next.since = latest(next.since, at);
  }
}

/**
 * Checks that a process takes up each turn that may continue. A turn of a paused agent waits for a
 * person, and has no limit. `deadline` is ten minutes before the time of the audit.
 */
export const turnsAreTakenUp = (deadline: string): SessionCheck => ({
  name: 'turns-are-taken-up',
  about:
    'no turn waits for over ten minutes without a call, unless a record says that it waits for a person, or until when',
  counts: 'turns',
  start: () => new WaitRun(deadline),
});
