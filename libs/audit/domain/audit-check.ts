import type { RunEvent, SessionEvent, TurnEndType } from '@antiphon/contracts/agent';
import type { BudgetEvent } from '@antiphon/contracts/metering';
import type { StoredEvent } from '@antiphon/contracts/log';

/** Where an event stands: what a finding names. */
export type EventPlace = Pick<
  StoredEvent,
  'position' | 'workspace' | 'streamId' | 'streamVersion' | 'eventId'
>;

/** An event whose data has been parsed by its contract. */
export interface Parsed<Content> {
  readonly place: EventPlace;
  readonly content: Content;
  /** Epoch of the lease under which it was appended, if it was. */
  readonly epoch: number | undefined;
}

/** A rule that is broken, at an event; or something that has begun and not ended yet. */
export interface Finding {
  readonly kind: 'violation' | 'open';
  readonly at: EventPlace;
  readonly message: string;
}

/** One run of a check: events go in, in the order that the check asks for, findings come out. */
export interface CheckRun<Input> {
  see(input: Input): Finding[];
  /** After the last event (of the event stream, for a check of one). */
  end(): Finding[];
  /** How many of what it counts it has looked at. */
  count(): number;
  /** What it has to know of the past, as JSON, for a run that goes on from here; only checks along the whole log have it. */
  save?(): unknown;
}

/** A rule about the log as a fold: it keeps what it needs to know of the past and nothing else. */
export interface AuditCheck<Input> {
  /** `kebab-case`, as reports show it. */
  readonly name: string;
  /** What holds when there is no finding, in one sentence. */
  readonly about: string;
  /** What `count` counts. */
  readonly counts: string;
  /** `saved`: what a run of the same check answered to `save`. */
  start(saved?: unknown): CheckRun<Input>;
}

/** Started anew for each event stream; sees its events by version. */
export type SessionCheck = AuditCheck<Parsed<SessionEvent>>;
export type RunCheck = AuditCheck<Parsed<RunEvent>>;
export type ReservationCheck = AuditCheck<Parsed<BudgetEvent>>;
/** Sees the events of the whole log by position. */
export type MoneyCheck = AuditCheck<Parsed<SessionEvent | BudgetEvent>>;

const TURN_ENDS: Readonly<Record<TurnEndType, true>> = {
  TurnCompleted: true,
  TurnFailed: true,
  TurnCancelled: true,
};

/** Returns true for the type of an event that ends a turn. The audit judges by its own list (ADR 44). */
export const isTurnEnd = (type: string): type is TurnEndType => Object.hasOwn(TURN_ENDS, type);

export const violation = (at: EventPlace, message: string): Finding => ({ kind: 'violation', at, message });
export const open = (at: EventPlace, message: string): Finding => ({ kind: 'open', at, message });
