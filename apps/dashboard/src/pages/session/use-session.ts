import { AnswerText } from '@antiphon/client';
import { useEffect, useMemo, useRef, useState } from 'react';
import { client } from '../../data/gateway.js';
import { withoutDeleted } from '../../data/deletions.js';
import { createFold, foldTo, type SessionFold } from '../../data/session-fold.js';
import type { Transcript } from '../../data/transcript.js';
import type { SessionLog } from './session-log.js';

/** Folds a session up to the position of the page. */
export const useTranscript = ({ events, deletions }: SessionLog, position: number | null): Transcript => {
  const last = useRef<SessionFold | null>(null);
  const fold = useMemo(() => (last.current = createFold(events, last.current)), [events]);
  return useMemo(() => withoutDeleted(foldTo(fold, position), deletions), [fold, position, deletions]);
};

/** Text of each open turn, as its frames have brought it so far. */
export type LiveTexts = ReadonlyMap<string, string>;
const NONE: LiveTexts = new Map();
/** Time between two renders of a growing text: at least two frames, and twice what one takes. */
const FRAME_MS = 32;
const MAX_WAIT_MS = 250;

/** Follows the text of open turns. A frame comes before the event that makes its text a fact. */
export const useLiveTexts = (sessionId: string, isOn: boolean): LiveTexts => {
  const [texts, setTexts] = useState<LiveTexts>(NONE);
  useEffect(() => {
    if (!isOn) return;
    const stream = client.follow(sessionId);
    const open = new Map<string, AnswerText>();
    const ended = new Set<string>();
    let turnId = '';
    let scheduled: ReturnType<typeof setTimeout> | undefined;
    let wait = FRAME_MS;
    const show = (): void => {
      const startedAt = performance.now();
      scheduled = undefined;
      // The next task begins after this text is rendered.
      setTimeout(() => {
        wait = Math.min(MAX_WAIT_MS, Math.max(FRAME_MS, 2 * (performance.now() - startedAt)));
      });
      setTexts(new Map([...open].map(([id, answer]) => [id, answer.toString()])));
    };
    const read = async (): Promise<void> => {
      for await (const frame of stream) {
        if (frame.event === 'accepted') {
          for (const id of ended) open.delete(id);
          ended.clear();
          turnId = frame.data.turnId;
          open.set(turnId, new AnswerText());
        }
        open.get(turnId)?.add(frame);
        // The text stays in the page until the event that makes it a fact.
        if (frame.event === 'done') ended.add(frame.data.turnId);
        scheduled ??= setTimeout(show, wait);
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
