import type { AuditCheck, CheckRun, EventPlace, Finding } from '@antiphon/audit-domain';

/** A broken rule. A violation without an event (a missing row, for example) has no event id. */
export interface Violation {
  readonly check: string;
  readonly message: string;
  readonly workspace: string | null;
  readonly streamId: string | null;
  readonly streamVersion: number | null;
  readonly eventId: string | null;
  readonly position: number | null;
}

export interface CheckReport {
  readonly name: string;
  /** The checked rule in one sentence. */
  readonly about: string;
  /** The items that `checked` counts, such as `turns`. */
  readonly counts: string;
  readonly checked: number;
  readonly violations: number;
  /**
   * Number of items that have begun and not ended. A strict audit counts them as violations too.
   */
  readonly open: number;
  /** First violation in the order of the log. */
  readonly first: Violation | null;
  readonly firstOpen: Violation | null;
}

/** Record with which the signed roots begin. */
export interface RootsBeginReport {
  /** Roots vouch for the log from here on: events before it could have been changed earlier. */
  readonly position: number;
  /** ISO 8601. */
  readonly at: string;
  /** An operator accepted the events before an `adoption`, and a restore those before an `epoch`. */
  readonly kind: 'root' | 'epoch' | 'adoption';
  readonly actor: string | null;
  readonly reason: string | null;
}

/** State of the signatures over the log. */
export interface SigningReport {
  /** `stale`: an event that no root covers is older than allowed. */
  readonly state: 'signed' | 'unsigned' | 'stale';
  /** Position and time of the newest compared root; null without one. */
  readonly position: number | null;
  readonly at: string | null;
  readonly unsignedEvents: number;
  /** Null where the first record is not known, such as without a copy of the file of roots. */
  readonly begin: RootsBeginReport | null;
}

export interface AuditReport {
  /** False when a rule is broken. */
  readonly ok: boolean;
  /** Position of the newest checked event. */
  readonly headPosition: number;
  /** Number of checked events. */
  readonly events: number;
  /** Position of the checkpoint at which the audit began; null for the whole log. */
  readonly since: number | null;
  readonly checks: readonly CheckReport[];
  /** Null when the log could not be read whole. */
  readonly signing: SigningReport | null;
  /** Violation at the lowest position in all checks; those without an event come last. */
  readonly first: Violation | null;
  readonly durationMs: number;
}

export type About = Pick<AuditCheck<unknown>, 'name' | 'about' | 'counts'>;

const toViolation = (check: string, { at, message }: Finding): Violation => ({
  check,
  message,
  workspace: at.workspace || null,
  streamId: at.streamId || null,
  streamVersion: at.streamVersion || null,
  eventId: at.eventId || null,
  position: at.position || null,
});

const earlier = (a: Violation | null, b: Violation): Violation =>
  a !== null && (a.position ?? Infinity) <= (b.position ?? Infinity) ? a : b;

/** Counts the findings of one check over all its runs, and keeps the first of each kind. */
export class Tally {
  private checked = 0;
  private violations = 0;
  private open = 0;
  private first: Violation | null = null;
  private firstOpen: Violation | null = null;

  constructor(
    private readonly check: About,
    /** Counts open findings as violations. */
    private readonly isStrict: boolean,
  ) {}

  add(findings: readonly Finding[]): void {
    for (const finding of findings) {
      const found = toViolation(this.check.name, finding);
      if (finding.kind === 'open') {
        this.open++;
        this.firstOpen = earlier(this.firstOpen, found);
      }
      if (finding.kind === 'violation' || this.isStrict) {
        this.violations++;
        this.first = earlier(this.first, found);
      }
    }
  }

  count(checked: number): void {
    this.checked += checked;
  }

  report(): CheckReport {
    const { name, about, counts } = this.check;
    const { checked, violations, open, first, firstOpen } = this;
    return { name, about, counts, checked, violations, open, first, firstOpen };
  }
}

/** Runs one check over the log and tallies its findings. */
export class CheckRunner<Input> {
  private run: CheckRun<Input>;

  constructor(
    private readonly check: AuditCheck<Input>,
    private readonly tally: Tally,
    /** State of an earlier run. */
    saved?: unknown,
  ) {
    this.run = check.start(saved);
  }

  see(input: Input): void {
    this.tally.add(this.run.see(input));
  }

  save(): unknown {
    return this.run.save?.();
  }

  /** Ends the run. The next input begins a new one. */
  end(): void {
    this.tally.add(this.run.end());
    this.tally.count(this.run.count());
    this.run = this.check.start();
  }
}

/** Creates the place of a finding that concerns no event. */
export const nowhere = (workspace: string, streamId = ''): EventPlace => ({
  position: 0,
  workspace,
  streamId,
  streamVersion: 0,
  eventId: '',
});

export const findFirst = (checks: readonly CheckReport[]): Violation | null =>
  checks.reduce<Violation | null>(
    (first, check) => (check.first === null ? first : earlier(first, check.first)),
    null,
  );
