import {
  agentsBeginAndEndInOrder,
  type AgentFact,
  type EventPlace,
  messagesArriveOnce,
  type Parsed,
  type StepStart,
  treeBudgetsAreNested,
} from '@antiphon/audit-domain';
import type { RecordedEvent } from '@antiphon/event-store';
import { type CheckReport, CheckRunner, Tally } from '../audit-report.js';
import {
  isAgentEvent,
  isLimitEvent,
  isMessageEvent,
  isTaskEvent,
  isTreeEvent,
  parseEvent,
} from '../read-log/parse-event.js';

const CHECKS = [agentsBeginAndEndInOrder, messagesArriveOnce, treeBudgetsAreNested] as const;
const STARTS: ReadonlySet<string> = new Set<StepStart['type']>(['ModelCallStarted', 'ToolCallRequested']);

/** State of the checks as JSON, by the name of the check. */
export type SavedAgentChecks = Readonly<Record<string, unknown>>;

/** Returns the event if a check of agents takes it. */
const toFact = (event: RecordedEvent): AgentFact | undefined => {
  // Only these two fields are read of the start of a step.
  if (STARTS.has(event.type)) return { type: event.type, data: event.data } as unknown as StepStart;
  const parsed = parseEvent(event);
  if (parsed.kind !== 'known') return undefined;
  const { content } = parsed;
  switch (content.type) {
    case 'SessionStarted':
    case 'TurnRequested':
    case 'MessagesReceived':
    case 'BudgetReserved':
      return content;
    default:
      return isAgentEvent(content) ||
        isTreeEvent(content) ||
        isMessageEvent(content) ||
        isTaskEvent(content) ||
        isLimitEvent(content)
        ? content
        : undefined;
  }
};

/** The checks of agents, messages and tree budgets along the whole log. */
export class AgentChecks {
  private readonly tallies: readonly Tally[];
  private readonly runners: readonly CheckRunner<Parsed<AgentFact>>[];

  constructor(strict: boolean, saved: SavedAgentChecks = {}) {
    this.tallies = CHECKS.map((check) => new Tally(check, strict));
    this.runners = CHECKS.map(
      (check, index) => new CheckRunner(check, this.tallies[index] as Tally, saved[check.name]),
    );
  }

  see(event: RecordedEvent, place: EventPlace): void {
    const content = toFact(event);
    if (content) for (const runner of this.runners) runner.see({ place, content, epoch: undefined });
  }

  save(): SavedAgentChecks {
    return Object.fromEntries(CHECKS.map(({ name }, index) => [name, this.runners[index]?.save()]));
  }

  end(): CheckReport[] {
    for (const runner of this.runners) runner.end();
    return this.tallies.map((tally) => tally.report());
  }
}
