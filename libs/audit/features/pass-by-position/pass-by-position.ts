import type pg from 'pg';
import {
  admissionsStayWithinLimits,
  BudgetBook,
  commandsHappenOnce,
  ledgerEqualsUsage,
  positionsAreGapless,
} from '@antiphon/audit-domain';
import type {
  CommandClaim,
  CommandFact,
  CommandInput,
  EventPlace,
  Parsed,
  SavedBook,
} from '@antiphon/audit-domain';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { BudgetEvent } from '@antiphon/contracts/metering';
import { EVENT_BYTES } from '@antiphon/event-store';
import type { RecordedEvent, SavedTree } from '@antiphon/event-store';
import { type CheckReport, CheckRunner, Tally } from '../audit-report.js';
import { isBudgetEvent, isSessionEvent, parseEvent } from '../read-log/parse-event.js';
import { type EventRow, type LogBounds, readRows, toEvent, toPlace } from '../read-log/read-log.js';
import type { RootsAudit } from '../signed-roots.js';
import { AgentChecks } from './agent-facts.js';
import type { SavedAgentChecks } from './agent-facts.js';
import { ClaimReader, findRepeatedTurns } from './claims.js';

/**
 * Reads data only where a check of this pass needs it: texts and tool results are most of a log.
 */
const LOG_SQL = `select position, workspace, category, stream_id, stream_version, event_id, type, schema_version,
  case when category in ('budget', 'agent', 'task') or type in ('ModelCallCompleted', 'ModelCallAborted', 'TurnRequested',
      'SessionStarted', 'MessagesReceived') then data
    when type in ('ModelCallStarted', 'ToolCallRequested')
      then jsonb_build_object('turnId', data -> 'turnId', 'attempt', data -> 'attempt') end as data, '{}'::jsonb as metadata, recorded_at, hash
  from events`;

const hasData = ({ data }: RecordedEvent): boolean => (data as RecordedEvent['data'] | null) !== null;

/** Returns true for events of which the pass reads a part. */
const isStepStart = ({ type }: RecordedEvent): boolean =>
  type === 'ModelCallStarted' || type === 'ToolCallRequested';

const toFact = (event: RecordedEvent, place: EventPlace): CommandFact | undefined => {
  const { type, data } = event;
  if (type === 'TurnRequested') return { place, type, id: String(data['turnId']) };
  return type === 'SessionStarted' ? { place, type, id: String(data['sessionId']) } : undefined;
};

/** State of the checks at a position as JSON. A pass that begins there needs no earlier event. */
export interface PassState {
  readonly book: SavedBook;
  readonly ledger: unknown;
  /** Missing in checkpoints of older versions, whose logs have no agents. */
  readonly agents?: SavedAgentChecks;
  /** Trees of the log at the position; missing in checkpoints of older versions. */
  readonly trees?: readonly SavedTree[];
}

/** Start of a pass that does not begin at the beginning of the log. */
export interface PassStart {
  readonly position: number;
  readonly state: PassState;
}

export interface PositionPass {
  readonly reports: CheckReport[];
  readonly state: PassState;
  /** Balances of all scopes at the end of the log, as the audit computes them. */
  readonly book: BudgetBook;
  readonly events: number;
}

/** The checks along the whole log. */
class PositionChecks {
  private readonly tallies: readonly Tally[];
  private readonly positions: CheckRunner<EventPlace>;
  private readonly commands: CheckRunner<CommandInput>;
  private readonly commandTally: Tally;
  private readonly admissions: CheckRunner<Parsed<SessionEvent | BudgetEvent>>;
  private readonly ledger: CheckRunner<Parsed<SessionEvent | BudgetEvent>>;
  private readonly agents: AgentChecks;

  constructor(
    base: number,
    private readonly book: BudgetBook,
    { ledger, agents }: Partial<PassState>,
    strict: boolean,
  ) {
    const [gapless, admissions] = [positionsAreGapless(base), admissionsStayWithinLimits(book)];
    const tallies = [gapless, commandsHappenOnce, admissions, ledgerEqualsUsage].map(
      (check) => new Tally(check, strict),
    ) as [Tally, Tally, Tally, Tally];
    this.tallies = tallies;
    this.commandTally = tallies[1];
    this.positions = new CheckRunner(gapless, tallies[0]);
    this.commands = new CheckRunner(commandsHappenOnce, tallies[1]);
    this.admissions = new CheckRunner(admissions, tallies[2]);
    this.ledger = new CheckRunner(ledgerEqualsUsage, tallies[3], ledger);
    this.agents = new AgentChecks(strict, agents);
  }

  see(event: RecordedEvent, claims: readonly CommandClaim[]): void {
    const place = toPlace(event);
    this.positions.see(place);
    this.seeClaims(claims);
    const fact = toFact(event, place);
    if (fact) this.commands.see({ kind: 'fact', fact });
    if (!hasData(event)) return;
    this.agents.see(event, place);
    if (!isStepStart(event)) this.seeMoney(event, place);
  }

  seeClaims(claims: readonly CommandClaim[]): void {
    for (const claim of claims) this.commands.see({ kind: 'claim', claim });
  }

  save(): PassState {
    return { book: this.book.save(), ledger: this.ledger.save(), agents: this.agents.save() };
  }

  async end(client: pg.ClientBase, base: number): Promise<CheckReport[]> {
    for (const check of [this.positions, this.commands, this.admissions, this.ledger]) check.end();
    this.commandTally.add(await findRepeatedTurns(client, base));
    return [...this.tallies.map((tally) => tally.report()), ...this.agents.end()];
  }

  private seeMoney(event: RecordedEvent, place: EventPlace): void {
    const parsed = parseEvent(event);
    // The pass by stream reports events that do not match their contracts.
    if (parsed.kind !== 'known') return;
    const { content } = parsed;
    if (!isSessionEvent(content) && !isBudgetEvent(content)) return;
    this.admissions.see({ place, content, epoch: undefined });
    this.ledger.see({ place, content, epoch: undefined });
  }
}

/** Reads the log by position, from `start` on. Keeps balances of scopes and open reservations. */
export const passByPosition = async (
  client: pg.ClientBase,
  bounds: LogBounds,
  strict: boolean,
  roots: RootsAudit,
  start?: PassStart,
): Promise<PositionPass> => {
  const base = start?.position ?? bounds.base;
  const book = new BudgetBook(start?.state.book);
  const checks = new PositionChecks(base, book, start?.state ?? {}, strict);
  const claims = new ClaimReader(client, base);
  const sql = `${LOG_SQL} where position > ${base} order by position`;
  let events = 0;
  for await (const row of readRows<EventRow>(client, 'audit_log', sql, EVENT_BYTES)) {
    const event = toEvent(row);
    roots.seeInLog(event);
    checks.see(event, await claims.readUpTo(event.position));
    events++;
  }
  checks.seeClaims(await claims.readUpTo(Infinity));
  const state = { ...checks.save(), trees: roots.save() };
  return { reports: await checks.end(client, base), state, book, events };
};
