import type pg from 'pg';
import {
  agentsFollowTheirLifecycle,
  approvalsPrecedeCalls,
  chatsBeginOnce,
  denialsAreOneEvent,
  fileTreesFoldInOrder,
  fileTreesStayWithinQuotas,
  inboxesAreReadForward,
  leaseEpochsGrow,
  messagesAreReceivedOnce,
  modelAttemptsAreNumbered,
  plansEqualTheirFiles,
  reservationsEndOnce,
  runsFollowTheirGraph,
  sessionsBeginOnce,
  tasksEndOnce,
  toolCallsHaveOneOutcome,
  treesStayWithinLimits,
  turnsAreTakenUp,
  turnsEndOnce,
  versionsAreContiguous,
  violation,
} from '@antiphon/audit-domain';
import type { AuditCheck, EventPlace, Finding, Parsed } from '@antiphon/audit-domain';
import type {
  AgentEvent,
  AgentMessageEvent,
  AgentTreeEvent,
  ChatEvent,
  FileTreeEvent,
  PlanEvent,
  RunEvent,
  SessionEvent,
  TaskEvent,
} from '@antiphon/contracts/agent';
import type { BudgetEvent } from '@antiphon/contracts/metering';
import { EVENT_BYTES } from '@antiphon/event-store';
import type { RecordedEvent, StreamHead } from '@antiphon/event-store';
import { type About, type CheckReport, CheckRunner, Tally } from '../audit-report.js';
import {
  eventsMatchContracts,
  isAgentEvent,
  isBudgetEvent,
  isChatEvent,
  isFileTreeEvent,
  isMessageEvent,
  isPlanEvent,
  isRunEvent,
  isSessionEvent,
  isTaskEvent,
  isTreeEvent,
  parseEvent,
} from '../read-log/parse-event.js';
import { EVENT_COLUMNS, type EventRow, readRows, toEvent, toPlace } from '../read-log/read-log.js';
import type { RootsAudit } from '../signed-roots.js';
import { hashChainsAreWhole, HeadMerge, streamHeadsMatch } from './stream-heads.js';

/** Selects all streams, or the whole streams that have events after a position. */
const streamsSql = (after: number | null): string => `select ${EVENT_COLUMNS} from events
  ${after === null ? '' : `where (workspace, stream_id) in (select workspace, stream_id from events where position > ${after})`}
  order by workspace, stream_id, stream_version`;

const SESSION_CHECKS = [
  approvalsPrecedeCalls,
  sessionsBeginOnce,
  turnsEndOnce,
  toolCallsHaveOneOutcome,
  denialsAreOneEvent,
  modelAttemptsAreNumbered,
  leaseEpochsGrow,
  messagesAreReceivedOnce,
];

const isSameStream = (a: RecordedEvent, b: RecordedEvent): boolean =>
  a.workspace === b.workspace && a.streamId === b.streamId;

/** The checks within one event stream. Keeps the state of one stream at a time. */
class StreamChecks {
  readonly heads: Tally;
  private readonly tallies: Tally[] = [];
  private readonly versions: CheckRunner<EventPlace>;
  private readonly hashes: CheckRunner<RecordedEvent>;
  private readonly contracts: Tally;
  private readonly sessions: readonly CheckRunner<Parsed<SessionEvent>>[];
  private readonly runs: CheckRunner<Parsed<RunEvent>>;
  private readonly reservations: CheckRunner<Parsed<BudgetEvent>>;
  private readonly agents: CheckRunner<Parsed<AgentEvent>>;
  private readonly trees: CheckRunner<Parsed<AgentTreeEvent>>;
  private readonly inboxes: CheckRunner<Parsed<AgentMessageEvent>>;
  private readonly tasks: CheckRunner<Parsed<TaskEvent>>;
  private readonly files: readonly CheckRunner<Parsed<FileTreeEvent>>[];
  private readonly chats: CheckRunner<Parsed<ChatEvent>>;
  private readonly plans: CheckRunner<Parsed<PlanEvent>>;

  constructor(
    { strict, takenUpSince }: Pick<StreamPass, 'strict' | 'takenUpSince'>,
    private readonly roots: RootsAudit,
  ) {
    const addTally = (about: About): Tally => {
      const tally = new Tally(about, strict);
      this.tallies.push(tally);
      return tally;
    };
    const start = <Input>(check: AuditCheck<Input>) => new CheckRunner(check, addTally(check));
    // Reports show the checks in this order.
    this.versions = start(versionsAreContiguous);
    this.hashes = start(hashChainsAreWhole);
    this.heads = addTally(streamHeadsMatch);
    this.contracts = addTally(eventsMatchContracts);
    this.sessions = [...SESSION_CHECKS, turnsAreTakenUp(takenUpSince)].map((check) => start(check));
    this.runs = start(runsFollowTheirGraph);
    this.reservations = start(reservationsEndOnce);
    this.agents = start(agentsFollowTheirLifecycle);
    this.trees = start(treesStayWithinLimits);
    this.inboxes = start(inboxesAreReadForward);
    this.tasks = start(tasksEndOnce);
    this.files = [fileTreesFoldInOrder, fileTreesStayWithinQuotas].map((check) => start(check));
    this.chats = start(chatsBeginOnce);
    this.plans = start(plansEqualTheirFiles);
  }

  see(event: RecordedEvent): void {
    this.versions.see(toPlace(event));
    this.hashes.see(event);
    this.roots.seeInStream(event);
    this.seeContent(event);
  }

  endStream(): void {
    const { versions, hashes, sessions, runs, reservations } = this;
    const { agents, trees, inboxes, tasks, files, chats, plans } = this;
    for (const check of [versions, hashes, ...sessions, runs, reservations]) check.end();
    for (const check of [agents, trees, inboxes, tasks, ...files, chats, plans]) check.end();
    this.roots.endStream();
  }

  reports(): CheckReport[] {
    return this.tallies.map((tally) => tally.report());
  }

  private seeContent(event: RecordedEvent): void {
    const parsed = parseEvent(event);
    const place = toPlace(event);
    if (parsed.kind === 'foreign') return;
    this.contracts.count(1);
    if (parsed.kind === 'malformed') {
      this.contracts.add([violation(place, `${event.type}: ${parsed.reason}`)]);
      return;
    }
    const { content } = parsed;
    const { epoch } = event.metadata;
    const { recordedAt } = event;
    if (isSessionEvent(content))
      for (const check of this.sessions) check.see({ place, content, epoch, recordedAt });
    else if (isRunEvent(content)) this.runs.see({ place, content, epoch });
    else if (isBudgetEvent(content)) this.reservations.see({ place, content, epoch });
    else if (isAgentEvent(content)) this.agents.see({ place, content, epoch });
    else if (isTreeEvent(content)) this.trees.see({ place, content, epoch });
    else if (isMessageEvent(content)) this.inboxes.see({ place, content, epoch });
    else if (isTaskEvent(content)) this.tasks.see({ place, content, epoch });
    else if (isFileTreeEvent(content)) for (const check of this.files) check.see({ place, content, epoch });
    else if (isChatEvent(content)) this.chats.see({ place, content, epoch });
    else if (isPlanEvent(content)) this.plans.see({ place, content, epoch });
  }
}

export interface StreamPass {
  readonly strict: boolean;
  readonly roots: RootsAudit;
  /**
   * Reads only streams with events after this position; null for all. A signed root covers the
   * earlier events.
   */
  readonly after: number | null;
  /** Time since which a process must have taken up every turn that may continue, ISO 8601. */
  readonly takenUpSince: string;
}

/** Reads event streams by version, one after another. */
export const passByStream = async (client: pg.ClientBase, pass: StreamPass): Promise<CheckReport[]> => {
  const { roots, after } = pass;
  const checks = new StreamChecks(pass, roots);
  const addUnreadHead = (head: StreamHead): Finding[] => {
    roots.addUnreadHead(head);
    return [];
  };
  const heads = after === null ? new HeadMerge(client) : new HeadMerge(client, addUnreadHead);
  let last: RecordedEvent | undefined;
  const endStream = async (ended: RecordedEvent): Promise<void> => {
    checks.heads.count(1);
    // First the heads before this one, because roots take heads in the order of their names.
    checks.heads.add(await heads.compareLast(ended));
    checks.endStream();
  };
  for await (const row of readRows<EventRow>(client, 'audit_streams', streamsSql(after), EVENT_BYTES)) {
    const event = toEvent(row);
    if (last && !isSameStream(last, event)) await endStream(last);
    checks.see(event);
    last = event;
  }
  if (last) await endStream(last);
  checks.heads.add(await heads.end());
  return checks.reports();
};
