import type { AuditCheck, CheckRun, EventPlace, Finding } from '@antiphon/audit-domain';

/** A broken rule. What is not about one event (a missing row, say) has no event id. */
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
  /** What holds when there is no violation, in one sentence. */
  readonly about: string;
  /** What `checked` counts, such as `turns`. */
  readonly counts: string;
  readonly checked: number;
  readonly violations: number;
  /** Has begun and not ended: no violation, unless the audit was told that nothing is at work. */
  readonly open: number;
  /** Of the log's order; null when nothing is broken. */
  readonly first: Violation | null;
  readonly firstOpen: Violation | null;
}

export interface AuditReport {
  /** False when anything is broken. */
  readonly ok: boolean;
  /** Position of the newest event that was looked at, and how many were. */
  readonly headPosition: number;
  readonly events: number;
  /** Position of the checkpoint that it went on from; null when all of the log was looked at. */
  readonly since: number | null;
  readonly checks: readonly CheckReport[];
  /** Of all checks, the one at the lowest position; those without an event come last. */
  readonly first: Violation | null;
  readonly durationMs: number;
}

/** Findings of one check, however many runs it takes: numbers and the first of each kind. */
export interface Tally {
  add(findings: readonly Finding[]): void;
  count(checked: number): void;
  report(): CheckReport;
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

const orderOf = ({ position }: Violation): number => position ?? Infinity;
const earlier = (a: Violation | null, b: Violation): Violation =>
  a !== null && orderOf(a) <= orderOf(b) ? a : b;

/** `strict`: what is open counts as broken. */
export const createTally = ({ name, about, counts }: About, strict: boolean): Tally => {
  let checked = 0;
  let violations = 0;
  let open = 0;
  let first: Violation | null = null;
  let firstOpen: Violation | null = null;
  return {
    add: (findings) => {
      for (const finding of findings) {
        const found = toViolation(name, finding);
        if (finding.kind === 'open') {
          open++;
          firstOpen = earlier(firstOpen, found);
        }
        if (finding.kind === 'violation' || strict) {
          violations++;
          first = earlier(first, found);
        }
      }
    },
    count: (more) => (checked += more),
    report: () => ({ name, about, counts, checked, violations, open, first, firstOpen }),
  };
};

/** Feeds one check from its first event to its last; `saved`: where an earlier run of it left off. */
export const follow = <Input>(check: AuditCheck<Input>, tally: Tally, saved?: unknown) => {
  let run: CheckRun<Input> = check.start(saved);
  return {
    see: (input: Input): void => tally.add(run.see(input)),
    save: (): unknown => run.save?.(),
    /** Ends the run; what comes next begins a new one. */
    end: (): void => {
      tally.add(run.end());
      tally.count(run.count());
      run = check.start();
    },
  };
};

/** A place for a finding that is about no event. */
export const nowhere = (workspace: string, streamId = ''): EventPlace => ({
  position: 0,
  workspace,
  streamId,
  streamVersion: 0,
  eventId: '',
});

export const firstOf = (checks: readonly CheckReport[]): Violation | null =>
  checks.reduce<Violation | null>(
    (first, check) => (check.first === null ? first : earlier(first, check.first)),
    null,
  );
