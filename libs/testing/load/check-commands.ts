import { isDeepStrictEqual } from 'node:util';
import { framesOf, initialCursor, isTurnEnd, runStream, sessionStream } from '@antiphon/contracts/agent';
import type { Frame, SessionEvent } from '@antiphon/contracts/agent';
import type { StreamedFrame } from '../client/socket-client.js';
import type { TakenRun } from './keyed-run.js';
import type { TakenTurn } from './keyed-turn.js';

/** An event of the log, as far as these checks look at it. */
export interface LoggedFact {
  readonly streamId: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Verdict {
  readonly turns: number;
  readonly runs: number;
  /** Commands that are not in the log, or have no end there. */
  readonly lost: number;
  /** Commands that are there more than once, or have more than one end. */
  readonly repeated: number;
  /** Of turns that ended, how: `completed`, or the code of a failure. */
  readonly ends: Readonly<Record<string, number>>;
  /** Clients whose frames are not those of the log. */
  readonly misread: number;
  /** The first that is wrong, in words; null when nothing is. */
  readonly first: string | null;
}

const RUN_END = /^Run(Completed|Failed|Cancelled)$/;

type Shown = Pick<StreamedFrame, 'event' | 'data' | 'offset'>;

/** What a client shows in the end: a `restart` voids what lies between the offset that it names and itself. */
export const settledFrames = (frames: readonly Shown[]): Shown[] => {
  const restarts = frames.filter(({ event }) => event === 'restart');
  return frames
    .filter(
      ({ offset }) =>
        !restarts.some(
          ({ data, offset: end }) => offset >= (data as { offset: number }).offset && offset < end,
        ),
    )
    .map(({ event, data, offset }) => ({ event, data, offset }));
};

const framesOfTurn = (events: readonly LoggedFact[], turnId: string): Frame[] => {
  let cursor = initialCursor;
  return events
    .flatMap((event) => {
      const step = framesOf(cursor, event as unknown as SessionEvent);
      cursor = step.cursor;
      return step.frames;
    })
    .filter((frame) => frame.turnId === turnId);
};

const groupBy = <T>(list: readonly T[], keyOf: (item: T) => string): Map<string, T[]> => {
  const groups = new Map<string, T[]>();
  for (const item of list) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
};

type Problem = { readonly kind: 'lost' | 'repeated' | 'misread'; readonly what: string };

const judgeCount = (count: number, what: string): Problem[] => {
  if (count === 1) return [];
  return [{ kind: count === 0 ? 'lost' : 'repeated', what: `${what} ${count} times` }];
};

const judgeFrames = (turn: TakenTurn, events: readonly LoggedFact[]): Problem[] => {
  // `accepted` is answered by the agent as well; its offset is the log's once the turn has begun.
  // Through JSON: what `fetch` has parsed has other prototypes in a test's realm, and is no other value for that.
  const without = (frames: readonly Shown[]): unknown =>
    JSON.parse(JSON.stringify(settledFrames(frames).filter(({ event }) => event !== 'accepted')));
  const [seen, logged] = [without(turn.frames), without(framesOfTurn(events, turn.turnId))];
  if (isDeepStrictEqual(seen, logged)) return [];
  const [client, log] = [JSON.stringify(seen), JSON.stringify(logged)];
  return [{ kind: 'misread', what: `turn ${turn.turnId}: a client saw ${client}, the log says ${log}` }];
};

const judgeTurn = (
  turn: TakenTurn,
  requested: ReadonlyMap<string, readonly LoggedFact[]>,
  streams: ReadonlyMap<string, readonly LoggedFact[]>,
): Problem[] => {
  const events = streams.get(sessionStream(turn.sessionId)) ?? [];
  const own = events.filter(({ data }) => data['turnId'] === turn.turnId);
  const ends = own.filter(({ type }) => isTurnEnd(type)).length;
  return [
    ...judgeCount(requested.get(turn.content)?.length ?? 0, `key ${turn.key} is in the log`),
    ...judgeCount(ends, `turn ${turn.turnId} (key ${turn.key}) ends`),
    ...judgeFrames(turn, events),
  ];
};

const judgeRun = (
  { runId, key }: TakenRun,
  started: ReadonlyMap<string, readonly LoggedFact[]>,
  streams: ReadonlyMap<string, readonly LoggedFact[]>,
): Problem[] => {
  const ends = (streams.get(runStream(runId)) ?? []).filter(({ type }) => RUN_END.test(type)).length;
  return [
    ...judgeCount(started.get(key)?.length ?? 0, `run key ${key} is in the log`),
    ...judgeCount(ends, `run ${runId} ends`),
  ];
};

const endsOf = (events: readonly LoggedFact[]): Record<string, number> => {
  const ends: Record<string, number> = {};
  for (const { type, data } of events) {
    if (!isTurnEnd(type)) continue;
    const how = type === 'TurnFailed' ? String(data['code']) : type.slice('Turn'.length).toLowerCase();
    ends[how] = (ends[how] ?? 0) + 1;
  }
  return ends;
};

/** The input of every run of a load, by which its start is found in the log. */
export const RUN_KEY_INPUT = 'key';

/**
 * Holds what clients were told against the log: each command that was accepted is in it once and ended once, and each
 * client saw the log's frames.
 */
export const checkCommands = (
  { turns, runs }: { readonly turns: readonly TakenTurn[]; readonly runs: readonly TakenRun[] },
  events: readonly LoggedFact[],
): Verdict => {
  const streams = groupBy(events, ({ streamId }) => streamId);
  const of = (type: string) => events.filter((event) => event.type === type);
  const requested = groupBy(of('TurnRequested'), ({ data }) => String(data['content']));
  const inputs = (fact: LoggedFact) => fact.data['inputs'] as Record<string, string> | undefined;
  const started = groupBy(of('RunStarted'), (fact) => inputs(fact)?.[RUN_KEY_INPUT] ?? '');
  const problems = [
    ...turns.flatMap((turn) => judgeTurn(turn, requested, streams)),
    ...runs.flatMap((run) => judgeRun(run, started, streams)),
  ];
  const count = (kind: Problem['kind']): number => problems.filter((problem) => problem.kind === kind).length;
  return {
    turns: turns.length,
    runs: runs.length,
    lost: count('lost'),
    repeated: count('repeated'),
    misread: count('misread'),
    ends: endsOf(events),
    first: problems[0]?.what ?? null,
  };
};
