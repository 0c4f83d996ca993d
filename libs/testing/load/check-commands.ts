import { isDeepStrictEqual } from 'node:util';
import { framesOf, initialCursor, isTurnEnd, runStream, sessionStream } from '@antiphon/contracts/agent';
import type { Frame, SessionEvent } from '@antiphon/contracts/agent';
import { effectiveFrames } from '../client/frames.js';
import type { StreamedFrame } from '../client/frames.js';
import { checkFigure, report } from './figures.js';
import type { EndedRun } from './run-to-end.js';
import type { SentTurn } from './send-turn.js';

/** The parts of a stored event that these checks read. */
export interface LoggedFact {
  readonly streamId: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Ends of a turn that a test allows. Every other end is a problem. */
export interface AllowedEnds {
  /** Minimum share of turns that complete, 0 to 1. */
  readonly completed: { readonly atLeast: number };
  /** Codes with which a turn may fail. Default: none. */
  readonly failed?: readonly string[];
  /** Whether a turn may end cancelled. Default: false. */
  readonly cancelled?: boolean;
}

/** The ends of a test whose faults may delay a turn, but never fail it. */
export const ALL_COMPLETE: AllowedEnds = { completed: { atLeast: 1 } };

export interface Verdict {
  readonly turns: number;
  readonly runs: number;
  /** Commands that are not in the log, or have no end there. */
  readonly lost: number;
  /** Commands that are in the log more than once, or have more than one end. */
  readonly repeated: number;
  /** Clients whose frames differ from those of the log. */
  readonly misread: number;
  /** Turns and runs with an end that the test does not allow. */
  readonly disallowed: number;
  /**
   * Number of turns by their end in the log: `completed`, `cancelled`, or the code of a failure.
   */
  readonly ends: Readonly<Record<string, number>>;
  /** Number of runs by their status, as their clients saw it. */
  readonly runEnds: Readonly<Record<string, number>>;
  /** Share of turns that completed, 0 to 1; 1 without turns. */
  readonly completedShare: number;
  /** The first problems, at most five; empty when the commands hold. */
  readonly problems: readonly string[];
  /** The first problem, or null. */
  readonly first: string | null;
}

interface Commands {
  readonly turns: readonly SentTurn[];
  readonly runs: readonly EndedRun[];
}

interface LoggedTurn {
  readonly ends: string[];
  readonly frames: Frame[];
}

type Kind = 'lost' | 'repeated' | 'misread' | 'disallowed';

const SHOWN_PROBLEMS = 5;
const RUN_END = /^Run(Completed|Failed|Cancelled)$/;

/** The input of every run of a load by which its start is found in the log. */
export const RUN_KEY_INPUT = 'key';

const groupBy = <T>(list: readonly T[], keyOf: (item: T) => string): Map<string, T[]> => {
  const groups = new Map<string, T[]>();
  for (const item of list) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
};

const countBy = (names: readonly string[]): Record<string, number> =>
  Object.fromEntries([...groupBy(names, (name) => name)].map(([name, group]) => [name, group.length]));

/** Counts turns by how their clients saw them end. */
export const countEnds = (turns: readonly Pick<SentTurn, 'end'>[]): Record<string, number> =>
  countBy(turns.map(({ end }) => end));

const loggedEnd = ({ type, data }: LoggedFact): string =>
  type === 'TurnFailed' ? String(data['code']) : type.slice('Turn'.length).toLowerCase();

/** Folds one session stream into its turns. */
const readTurns = (events: readonly LoggedFact[]): ReadonlyMap<string, LoggedTurn> => {
  const turns = new Map<string, LoggedTurn>();
  const turnOf = (turnId: string): LoggedTurn => {
    const turn = turns.get(turnId) ?? { ends: [], frames: [] };
    turns.set(turnId, turn);
    return turn;
  };
  let cursor = initialCursor;
  for (const event of events) {
    const step = framesOf(cursor, event as unknown as SessionEvent);
    cursor = step.cursor;
    for (const frame of step.frames) turnOf(frame.turnId).frames.push(frame);
    if (isTurnEnd(event.type)) turnOf(String(event.data['turnId'])).ends.push(loggedEnd(event));
  }
  return turns;
};

/**
 * Reduces frames to those that client and log must agree on. The agent sends `accepted` as well,
 * and its offset is the log's only once the turn has begun. Values pass through JSON, because Jest
 * gives those of `fetch` the prototypes of another realm.
 */
const comparable = (frames: readonly StreamedFrame[]): unknown =>
  JSON.parse(
    JSON.stringify(
      effectiveFrames(frames)
        .filter(({ event }) => event !== 'accepted')
        .map(({ event, data, offset }) => ({ event, data, offset })),
    ),
  );

class CommandCheck {
  private readonly found: { readonly kind: Kind; readonly what: string }[] = [];
  private readonly ends: string[] = [];
  private readonly streams: ReadonlyMap<string, readonly LoggedFact[]>;
  private readonly requests: ReadonlyMap<string, readonly LoggedFact[]>;
  private readonly starts: ReadonlyMap<string, readonly LoggedFact[]>;
  private readonly sessions = new Map<string, ReadonlyMap<string, LoggedTurn>>();

  constructor(
    events: readonly LoggedFact[],
    private readonly allowed: AllowedEnds,
  ) {
    const selectType = (type: string) => events.filter((event) => event.type === type);
    const keyOf = ({ data }: LoggedFact) =>
      (data['inputs'] as Record<string, string> | undefined)?.[RUN_KEY_INPUT] ?? '';
    this.streams = groupBy(events, ({ streamId }) => streamId);
    this.requests = groupBy(selectType('TurnRequested'), ({ data }) => String(data['content']));
    this.starts = groupBy(selectType('RunStarted'), keyOf);
  }

  checkTurn(turn: SentTurn): void {
    const { ends, frames } = this.turnsOf(turn.sessionId).get(turn.turnId) ?? { ends: [], frames: [] };
    const name = `turn ${turn.turnId} (key ${turn.key})`;
    this.checkOnce(this.requests.get(turn.content)?.length ?? 0, `key ${turn.key} is in the log`);
    this.checkOnce(ends.length, `${name} ends`);
    const [seen, logged] = [comparable(turn.frames), comparable(frames)];
    if (!isDeepStrictEqual(seen, logged))
      this.add('misread', `${name}: client ${JSON.stringify(seen)}, log ${JSON.stringify(logged)}`);
    this.ends.push(...ends);
    for (const end of ends) this.checkEnd(end, name);
  }

  checkRun({ key, runId, status, cancelRequested }: EndedRun): void {
    const ends = (this.streams.get(runStream(runId)) ?? []).filter(({ type }) => RUN_END.test(type));
    this.checkOnce(this.starts.get(key)?.length ?? 0, `run key ${key} is in the log`);
    this.checkOnce(ends.length, `run ${runId} ends`);
    const isAllowed = status === 'completed' || (status === 'cancelled' && cancelRequested);
    if (!isAllowed) this.add('disallowed', `run ${runId} (key ${key}) ends ${status}`);
  }

  verdict({ turns, runs }: Commands): Verdict {
    const ends = countBy(this.ends);
    const completedShare = this.ends.length === 0 ? 1 : (ends['completed'] ?? 0) / this.ends.length;
    const { atLeast } = this.allowed.completed;
    const count = (kind: Kind): number => this.found.filter((problem) => problem.kind === kind).length;
    const problems = this.found.slice(0, SHOWN_PROBLEMS).map(({ kind, what }) => `${kind}: ${what}`);
    if (completedShare < atLeast)
      problems.push(`${completedShare} of the turns completed, at least ${atLeast} must`);
    return {
      turns: turns.length,
      runs: runs.length,
      ...{ lost: count('lost'), repeated: count('repeated'), misread: count('misread') },
      disallowed: count('disallowed'),
      ...{ ends, runEnds: countBy(runs.map(({ status }) => status)), completedShare, problems },
      first: problems[0] ?? null,
    };
  }

  private turnsOf(sessionId: string): ReadonlyMap<string, LoggedTurn> {
    const known = this.sessions.get(sessionId);
    if (known) return known;
    const turns = readTurns(this.streams.get(sessionStream(sessionId)) ?? []);
    this.sessions.set(sessionId, turns);
    return turns;
  }

  private checkOnce(count: number, what: string): void {
    if (count !== 1) this.add(count === 0 ? 'lost' : 'repeated', `${what} ${count} times`);
  }

  private checkEnd(end: string, name: string): void {
    const { failed = [], cancelled = false } = this.allowed;
    if (end === 'completed' || failed.includes(end) || (end === 'cancelled' && cancelled)) return;
    this.add('disallowed', `${name} ends ${end}`);
  }

  private add(kind: Kind, what: string): void {
    this.found.push({ kind, what });
  }
}

/**
 * Compares the clients' records with the log. Each accepted command is in the log once and ends
 * once, with an end that `allowed` names. Each client saw the frames of the log. A run completes,
 * or is cancelled on its client's request.
 */
export const checkCommands = (
  commands: Commands,
  events: readonly LoggedFact[],
  allowed: AllowedEnds,
): Verdict => {
  const check = new CommandCheck(events, allowed);
  for (const turn of commands.turns) check.checkTurn(turn);
  for (const run of commands.runs) check.checkRun(run);
  return check.verdict(commands);
};

const percent = (share: number): string => `${(100 * share).toFixed(2)} %`;

/** Renders the share of completed turns and every other end, for a test's report. */
export const formatEnds = (
  { ends, runEnds, completedShare, runs }: Verdict,
  allowed: AllowedEnds,
): string => {
  const total = Object.values(ends).reduce((sum, count) => sum + count, 0);
  const share = `${ends['completed'] ?? 0} of ${total} turns completed (${percent(completedShare)}`;
  const bound = `at least ${percent(allowed.completed.atLeast)})`;
  return [`${share}, ${bound}; ${JSON.stringify(ends)}`, runs === 0 ? '' : `runs ${JSON.stringify(runEnds)}`]
    .filter(Boolean)
    .join('; ');
};

/**
 * Prints how the turns of a test ended, records the completed share as a figure, and throws at any
 * problem.
 */
export const assertCommandsHold = (what: string, verdict: Verdict, allowed: AllowedEnds): void => {
  report(`${what}: ${formatEnds(verdict, allowed)}`);
  if (verdict.problems.length > 0) throw new Error(`${what}: ${verdict.problems.join('\n')}`);
  const atLeast = 100 * allowed.completed.atLeast;
  checkFigure({ what: `${what}: turns completed`, value: 100 * verdict.completedShare, unit: '%', atLeast });
};
