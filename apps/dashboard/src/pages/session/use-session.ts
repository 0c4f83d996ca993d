import type { LogEvent } from '@antiphon/client';
import { AnswerText } from '@antiphon/client';
import { useEffect, useMemo, useState } from 'react';
import { usePosition } from '../../app/router.js';
import { client } from '../../data/gateway.js';
import { onEvents } from '../../data/live-log.js';
import { EMPTY, foldEvents, type Transcript } from '../../data/transcript.js';
import { toProblem, type Problem } from '../../data/use-read.js';

const PAGE = 1_000;

/** Reads every event of a stream, oldest first. */
const readStream = async (
  stream: string,
  signal: AbortSignal,
  take: (events: readonly LogEvent[]) => void,
): Promise<void> => {
  let cursor: string | undefined;
  do {
    const page = await client.http.readEvents({ query: { stream, limit: PAGE, cursor }, signal });
    if (signal.aborted) return;
    take(page.events);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
};

export interface SessionLog {
  readonly events: readonly LogEvent[];
  readonly isLoaded: boolean;
  readonly problem: Problem | null;
}

const byVersion = (a: LogEvent, b: LogEvent): number => a.streamVersion - b.streamVersion;

/** Adds events to those of a stream, in order and each once. */
const merge = (before: readonly LogEvent[], more: readonly LogEvent[]): readonly LogEvent[] => {
  const last = before.at(-1)?.streamVersion ?? 0;
  if (more.every(({ streamVersion }, index) => streamVersion === last + 1 + index))
    return [...before, ...more];
  const all = new Map([...before, ...more].map((event) => [event.streamVersion, event]));
  return [...all.values()].toSorted(byVersion);
};

/** Follows the events of a session: first what is stored, then new ones as they are committed. */
export const useSessionLog = (sessionId: string): SessionLog => {
  const stream = `session-${sessionId}`;
  const [log, setLog] = useState<SessionLog>({ events: [], isLoaded: false, problem: null });
  useEffect(() => {
    const abort = new AbortController();
    const add = (events: readonly LogEvent[]): void =>
      setLog((before) => ({ ...before, events: merge(before.events, events) }));
    setLog({ events: [], isLoaded: false, problem: null });
    const stop = onEvents((events) => {
      const own = events.filter(({ streamId }) => streamId === stream);
      if (own.length > 0) add(own);
    });
    readStream(stream, abort.signal, add).then(
      () => {
        if (!abort.signal.aborted) setLog((before) => ({ ...before, isLoaded: true }));
      },
      (error: unknown) => {
        if (!abort.signal.aborted)
          setLog((before) => ({ ...before, isLoaded: true, problem: toProblem(error) }));
      },
    );
    return () => {
      abort.abort();
      stop();
    };
  }, [stream]);
  return log;
};

/** Folds a session up to the position of the page. */
export const useTranscript = ({ events }: SessionLog): Transcript => {
  const position = usePosition();
  return useMemo(() => (events.length === 0 ? EMPTY : foldEvents(events, position)), [events, position]);
};

/** Text of each open turn, as its frames have brought it so far. */
export type LiveTexts = ReadonlyMap<string, string>;
const NONE: LiveTexts = new Map();

/** Follows the text of open turns. A frame comes before the event that makes its text a fact. */
export const useLiveTexts = (sessionId: string, isOn: boolean): LiveTexts => {
  const [texts, setTexts] = useState<LiveTexts>(NONE);
  useEffect(() => {
    if (!isOn) return;
    const stream = client.follow(sessionId);
    const open = new Map<string, AnswerText>();
    let turnId = '';
    let scheduled: ReturnType<typeof setTimeout> | undefined;
    const show = (): void => {
      scheduled = undefined;
      setTexts(new Map([...open].map(([id, answer]) => [id, answer.toString()])));
    };
    const read = async (): Promise<void> => {
      for await (const frame of stream) {
        if (frame.event === 'accepted') {
          turnId = frame.data.turnId;
          open.set(turnId, new AnswerText());
        }
        open.get(turnId)?.add(frame);
        if (frame.event === 'done') open.delete(frame.data.turnId);
        scheduled ??= setTimeout(show, 32);
      }
    };
    void read().catch(() => undefined);
    return () => {
      clearTimeout(scheduled);
      stream.detach();
      setTexts(NONE);
    };
  }, [sessionId, isOn]);
  return texts;
};
