import { type AuditCheck, type CheckRun, type EventPlace, type Finding, violation } from './audit-check.js';

/** Checks that positions count up by one after `base`, in the order of commits. */
export const positionsAreGapless = (base: number): AuditCheck<EventPlace> => ({
  name: 'positions-are-gapless',
  about: 'positions count up by one, so no reader can have skipped an event',
  counts: 'events',
  start: () => {
    let last = base;
    let events = 0;
    return {
      see: (place) => {
        const expected = last + 1;
        last = place.position;
        events++;
        return place.position === expected
          ? []
          : [violation(place, `position ${place.position} follows ${expected - 1}`)];
      },
      end: () => [],
      count: () => events,
    };
  },
});

/** Checks that versions of an event stream are 1, 2, 3 …, and that positions grow with them. */
export const versionsAreContiguous: AuditCheck<EventPlace> = {
  name: 'versions-are-contiguous',
  about: 'within each event stream versions are 1, 2, 3 …, and positions grow with them',
  counts: 'events',
  start: () => {
    let version = 0;
    let position = 0;
    let events = 0;
    return {
      see: (place) => {
        const expected = version + 1;
        const before = position;
        version = place.streamVersion;
        position = place.position;
        events++;
        if (version !== expected) return [violation(place, `version ${version} follows ${expected - 1}`)];
        return position > before
          ? []
          : [violation(place, `position ${position} does not follow ${before} of the version before`)];
      },
      end: () => [],
      count: () => events,
    };
  },
};

/** An idempotency claim: the events of its command, and the turn or session of its response. */
export interface CommandClaim {
  readonly workspace: string;
  readonly scope: string;
  readonly key: string;
  readonly firstPosition: number;
  readonly lastPosition: number;
  readonly turnId: string | null;
  readonly sessionId: string | null;
}

/**
 * An event that executes a command: its place, and the id of the turn or session that it starts.
 */
export interface CommandFact {
  readonly place: EventPlace;
  readonly type: 'TurnRequested' | 'SessionStarted';
  readonly id: string;
}

export type CommandInput =
  | { readonly kind: 'claim'; readonly claim: CommandClaim }
  | { readonly kind: 'fact'; readonly fact: CommandFact };

const findExpectedId = ({ turnId, sessionId }: CommandClaim): string | null => turnId ?? sessionId;

/**
 * Creates the findings of claims without their events. A claim is no event, so they have no place.
 */
const reportLost = (claims: readonly CommandClaim[]): Finding[] =>
  claims.map(({ workspace, key, scope, firstPosition, lastPosition }) =>
    violation(
      { position: 0, workspace, streamId: '', streamVersion: 0, eventId: '' },
      `the command with key ${key} (${scope}) is not at positions ${firstPosition} to ${lastPosition}`,
    ),
  );

class CommandRun implements CheckRun<CommandInput> {
  private waiting: CommandClaim[] = [];
  private commands = 0;

  see(input: CommandInput): Finding[] {
    if (input.kind === 'fact') return this.seeFact(input.fact);
    this.commands++;
    if (findExpectedId(input.claim) !== null) this.waiting.push(input.claim);
    return [];
  }

  end(): Finding[] {
    return reportLost(this.waiting);
  }

  count(): number {
    return this.commands;
  }

  private seeFact({ place, type, id }: CommandFact): Finding[] {
    const lost = this.waiting.filter((claim) => claim.lastPosition < place.position);
    const own = this.waiting.filter(
      (claim) => claim.workspace === place.workspace && findExpectedId(claim) === id,
    );
    this.waiting = this.waiting.filter((claim) => !lost.includes(claim) && !own.includes(claim));
    const repeated =
      own.length > 1 ? [violation(place, `${type} ${id} executes ${own.length} commands`)] : [];
    return [...reportLost(lost), ...repeated];
  }
}

/**
 * Checks that each claimed command is in the log at the positions of its claim, and that no event
 * executes two claims. Takes claims by first position, each before the events at or after it.
 */
export const commandsHappenOnce: AuditCheck<CommandInput> = {
  name: 'commands-happen-once',
  about: 'each command with an idempotency key was executed once, by the events that its response names',
  counts: 'commands',
  start: () => new CommandRun(),
};
