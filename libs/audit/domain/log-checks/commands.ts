import { violation } from '../audit-check.js';
import type { AuditCheck, EventPlace, Finding } from '../audit-check.js';

/** An idempotency claim: which events its command wrote, and the turn or session that it answered with. */
export interface CommandClaim {
  readonly workspace: string;
  readonly scope: string;
  readonly key: string;
  readonly firstPosition: number;
  readonly lastPosition: number;
  readonly turnId: string | null;
  readonly sessionId: string | null;
}

/** An event that carries out a command: where it stands, and what it accepted or began. */
export interface CommandFact {
  readonly place: EventPlace;
  readonly type: 'TurnRequested' | 'SessionStarted';
  readonly id: string;
}

export type CommandInput =
  | { readonly kind: 'claim'; readonly claim: CommandClaim }
  | { readonly kind: 'fact'; readonly fact: CommandFact };

/** A claim is no event: its finding stands nowhere in the log, and says where it should. */
const placeOf = ({ workspace }: CommandClaim): EventPlace => ({
  position: 0,
  workspace,
  streamId: '',
  streamVersion: 0,
  eventId: '',
});

const wanted = ({ turnId, sessionId }: CommandClaim): string | null => turnId ?? sessionId;

/**
 * Each claimed command is in the log where its claim says, and no two claims were carried out by the same event.
 * Claims come in the order of their first positions, each before the events at or after it.
 */
export const commandsHappenOnce: AuditCheck<CommandInput> = {
  name: 'commands-happen-once',
  about:
    'each command that came with an idempotency key was carried out once, by the events that its answer names',
  counts: 'commands',
  start: () => {
    let waiting: CommandClaim[] = [];
    let commands = 0;

    const lost = (claims: readonly CommandClaim[]): Finding[] =>
      claims.map((claim) => {
        const { key, scope, firstPosition, lastPosition } = claim;
        const text = `the command with key ${key} (${scope}) is not at positions ${firstPosition} to ${lastPosition}`;
        return violation(placeOf(claim), text);
      });
    const see = (fact: CommandFact): Finding[] => {
      const { position, workspace } = fact.place;
      const past = waiting.filter((claim) => claim.lastPosition < position);
      const own = waiting.filter((claim) => claim.workspace === workspace && wanted(claim) === fact.id);
      waiting = waiting.filter((claim) => !past.includes(claim) && !own.includes(claim));
      const twice =
        own.length > 1
          ? [violation(fact.place, `${fact.type} ${fact.id} answers ${own.length} commands`)]
          : [];
      return [...lost(past), ...twice];
    };
    return {
      see: (input) => {
        if (input.kind === 'fact') return see(input.fact);
        commands++;
        if (wanted(input.claim) !== null) waiting.push(input.claim);
        return [];
      },
      end: () => lost(waiting),
      count: () => commands,
    };
  },
};
