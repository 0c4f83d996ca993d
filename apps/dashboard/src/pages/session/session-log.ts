import type { LogEvent } from '@antiphon/client';
import { useCallback, useEffect, useRef, useState } from 'react';
import { client } from '../../data/gateway.js';
import { deletionsOf, type Deletion } from '../../data/deletions.js';
import { isFollowing, onEvents } from '../../data/live-log.js';
import { useStore } from '../../data/store.js';
import { toProblem, type Problem } from '../../data/use-read.js';
import type { EventsQuery } from '../events/event-query.js';

/** Events of the first read: the end of a long session is shown before the rest is read. */
const FIRST = 300;
const PAGE = 1_000;
/** Events that are read in advance in a page of the past, so that a drag needs no request. */
const MAX_AHEAD = 12_000;

/** A part of the event stream of a session without gaps. */
interface Range {
  readonly events: readonly LogEvent[];
  /** False once the first event of the session is in it. */
  readonly hasEarlier: boolean;
  /** True if later events of the session are not in it. */
  readonly hasLater: boolean;
}

export interface SessionLog extends Range {
  readonly isLoaded: boolean;
  readonly problem: Problem | null;
  /** Messages that a person deleted at any time. */
  readonly deletions: readonly Deletion[];
  readonly loadEarlier: () => void;
  readonly loadLater: () => void;
}

interface Options {
  /** Position of the page; null follows the session. */
  readonly position?: number | null;
  /** Position of an earlier turn to show instead of the end. */
  readonly from?: number | null;
  /** True while the position is dragged: nothing is read in advance. */
  readonly isScrubbing?: boolean;
  /** Reads everything before it is loaded. */
  readonly isWhole?: boolean;
}

const NOTHING: Range = { events: [], hasEarlier: true, hasLater: false };

/** Adds newer events, each once and in order. Events that leave a gap are no part of the range. */
const append = (before: readonly LogEvent[], more: readonly LogEvent[]): readonly LogEvent[] => {
  const last = before.at(-1)?.streamVersion ?? 0;
  const fresh = more.filter(({ streamVersion }) => streamVersion > last);
  return fresh.length === 0 ? before : [...before, ...fresh];
};

type Query = EventsQuery;

const readBack = async (stream: string, query: Query, signal: AbortSignal): Promise<Range> => {
  const page = await client.http.readEvents({ query: { stream, order: 'desc', ...query }, signal });
  const events = page.events.toReversed();
  return { events, hasEarlier: (events[0]?.streamVersion ?? 1) > 1, hasLater: false };
};

const readOn = async (stream: string, query: Query, signal: AbortSignal): Promise<Range> => {
  const { events, nextCursor } = await client.http.readEvents({ query: { stream, ...query }, signal });
  return { events, hasEarlier: (events[0]?.streamVersion ?? 1) > 1, hasLater: nextCursor !== null };
};

/** Reads the events before a range. */
const readEarlier = async (stream: string, range: Range, signal: AbortSignal): Promise<Range> => {
  const first = range.events[0];
  if (!first || !range.hasEarlier) return range;
  const at = first.position - 1;
  const before = await readBack(stream, { at, limit: PAGE }, signal);
  return { ...range, events: [...before.events, ...range.events], hasEarlier: before.hasEarlier };
};

const isSideOf = (side: Side | null, wanted: number): boolean =>
  side !== null && (side.wanted === wanted || covers(side, wanted));

const covers = ({ events, hasEarlier, hasLater }: Range, position: number | null): boolean => {
  if (position === null) return !hasLater && events.length > 0;
  const [first, last] = [events[0], events.at(-1)];
  const isAfterStart = !hasEarlier || (first !== undefined && first.position <= position);
  const isBeforeEnd = !hasLater || (last !== undefined && last.position > position);
  return events.length > 0 && isAfterStart && isBeforeEnd;
};

/** A range that was read for a position. */
interface Side extends Range {
  readonly wanted: number;
}

interface Kept {
  readonly stream: string;
  /** The end of the session, which follows it. */
  readonly main: Range;
  /** Another part, for a position or a turn that the end does not have. */
  readonly side: Side | null;
  readonly isLoaded: boolean;
  readonly problem: Problem | null;
  readonly deletions: readonly Deletion[];
}

const begin = (stream: string): Kept => ({
  ...{ stream, main: NOTHING, side: null, isLoaded: false, problem: null, deletions: [] },
});

/** Runs a read and keeps its failure, unless the page has moved on. */
type Work = (signal: AbortSignal) => Promise<void>;
const runWork = (work: Work, fail: (problem: Problem) => void): AbortController => {
  const abort = new AbortController();
  work(abort.signal).catch((error: unknown) => {
    if (!abort.signal.aborted) fail(toProblem(error));
  });
  return abort;
};

type SetKept = (next: (before: Kept) => Kept) => void;

/** Reads what was committed between the first read and the begin of the subscription. */
const useCatchUp = (stream: string, { isLoaded, main }: Kept, setKept: SetKept): void => {
  const isOn = useStore(isFollowing);
  const last = useRef(0);
  last.current = main.events.at(-1)?.position ?? 0;
  useEffect(() => {
    if (!isOn || !isLoaded) return;
    const read: Work = async (signal) => {
      const more = await readOn(stream, { after: last.current, limit: PAGE }, signal);
      setKept((before) => {
        if (before.stream !== stream) return before;
        const events = append(before.main.events, more.events);
        return events === before.main.events ? before : { ...before, main: { ...before.main, events } };
      });
    };
    const abort = runWork(read, () => undefined);
    return () => abort.abort();
  }, [isOn, isLoaded, stream, setKept]);
};

/** Reads the end of a session, or all of it, and appends its new events as they are committed. */
const useMain = (stream: string, isWhole: boolean) => {
  const [kept, setKept] = useState<Kept>(() => begin(stream));
  useEffect(() => {
    setKept(begin(stream));
    const change = (next: (before: Kept) => Partial<Kept>): void =>
      setKept((before) => (before.stream === stream ? { ...before, ...next(before) } : before));
    let early: LogEvent[] = [];
    let hasRead = false;
    const stop = onEvents((events) => {
      const own = events.filter(({ streamId }) => streamId === stream);
      if (own.length === 0) return;
      if (!hasRead) early.push(...own);
      else
        change(({ main, deletions }) => ({
          main: { ...main, events: append(main.events, own) },
          deletions: [...deletions, ...deletionsOf(own)],
        }));
    });
    const read: Work = async (signal) => {
      let main = await readBack(stream, { limit: isWhole ? PAGE : FIRST }, signal);
      while (isWhole && main.hasEarlier) main = await readEarlier(stream, main, signal);
      if (signal.aborted) return;
      hasRead = true;
      main = { ...main, events: append(main.events, early) };
      early = [];
      change(() => ({ main, isLoaded: true, deletions: deletionsOf(main.events) }));
      if (!main.hasEarlier) return;
      const query = { type: 'ChatMessageDeleted', limit: PAGE };
      const deleted = await readBack(stream, query, signal);
      change(({ deletions }) => ({ deletions: [...deletions, ...deletionsOf(deleted.events)] }));
    };
    const abort = runWork(read, (problem) => change(() => ({ isLoaded: true, problem })));
    return () => {
      abort.abort();
      stop();
    };
  }, [stream, isWhole]);
  useCatchUp(stream, kept, setKept);
  return [kept.stream === stream ? kept : begin(stream), setKept] as const;
};

/** Reads the part of a session for a position or a turn that its end does not have. */
const useSide = (stream: string, kept: Kept, setKept: SetKept, options: Options) => {
  const { position = null, from = null } = options;
  const wanted = from ?? position;
  const isMissing =
    kept.isLoaded && wanted !== null && !covers(kept.main, wanted) && !isSideOf(kept.side, wanted);
  useEffect(() => {
    if (!isMissing || wanted === null) return;
    const read: Work = async (signal) => {
      const range =
        from === null
          ? { ...(await readBack(stream, { at: wanted, limit: FIRST }, signal)), hasLater: true }
          : await readOn(stream, { after: wanted - 1, limit: FIRST }, signal);
      const side = { ...range, wanted };
      if (!signal.aborted) setKept((before) => (before.stream === stream ? { ...before, side } : before));
    };
    const abort = runWork(read, (problem) => setKept((before) => ({ ...before, problem })));
    return () => abort.abort();
  }, [isMissing, wanted, from, stream, setKept]);
};

/** Reads earlier events in advance in a page of the past, so that a drag needs no request. */
const useAhead = (stream: string, kept: Kept, setKept: SetKept, isOn: boolean) => {
  const { main, isLoaded } = kept;
  const isWanted = isOn && isLoaded && main.hasEarlier && main.events.length < MAX_AHEAD;
  useEffect(() => {
    if (!isWanted) return;
    const read: Work = async (signal) => {
      let more = main;
      while (more.hasEarlier && more.events.length < MAX_AHEAD)
        more = await readEarlier(stream, more, signal);
      if (signal.aborted) return;
      setKept((before) => {
        const isSame = before.stream === stream && before.main.events[0] === main.events[0];
        if (!isSame) return before;
        const events = append(more.events, before.main.events);
        return { ...before, main: { ...more, events } };
      });
    };
    const abort = runWork(read, () => undefined);
    return () => abort.abort();
  }, [isWanted, stream, main.events[0], setKept]);
};

/**
 * Follows the events of a session: first those of its end, then new ones as they are committed.
 * Earlier events are read when they are asked for.
 */
export const useSessionLog = (sessionId: string, options: Options = {}): SessionLog => {
  const stream = `session-${sessionId}`;
  const { position = null, from = null, isWhole = false, isScrubbing = false } = options;
  const [kept, setKept] = useMain(stream, isWhole);
  useSide(stream, kept, setKept, options);
  useAhead(stream, kept, setKept, position !== null && !isScrubbing);
  const { main, side, isLoaded, problem, deletions } = kept;
  const wanted = from ?? position;
  const isSide = wanted !== null && !covers(main, wanted);
  const range = isSide ? side : main;
  const isHere = !isSide || isSideOf(side, wanted);

  const latest = useRef({ isSide, range });
  latest.current = { isSide, range };
  const extend = useCallback(
    (read: (range: Range, signal: AbortSignal) => Promise<Range>) => {
      const { isSide: isOther, range: before } = latest.current;
      if (!before) return;
      const name = isOther ? 'side' : 'main';
      runWork(
        async (signal) => {
          const next = await read(before, signal);
          setKept((now) => {
            const current = now[name];
            if (now.stream !== stream || current?.events[0] !== before.events[0]) return now;
            return {
              ...now,
              [name]: { ...current, ...next, events: append(next.events, current?.events ?? []) },
            };
          });
        },
        (failure) => setKept((now) => ({ ...now, problem: failure })),
      );
    },
    [stream, setKept],
  );
  const loadEarlier = useCallback(
    () => extend((before, signal) => readEarlier(stream, before, signal)),
    [extend, stream],
  );
  const loadLater = useCallback(
    () =>
      extend(async (before, signal) => {
        const after = before.events.at(-1)?.position ?? 0;
        const more = await readOn(stream, { after, limit: PAGE }, signal);
        return { ...before, events: append(before.events, more.events), hasLater: more.hasLater };
      }),
    [extend, stream],
  );
  return {
    ...((isHere ? range : null) ?? NOTHING),
    ...{ isLoaded: isLoaded && (isHere || problem !== null), problem, deletions, loadEarlier, loadLater },
  };
};
