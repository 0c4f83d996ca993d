import type { RouteReply } from '@antiphon/client';
import { foldRunHistory } from '@antiphon/contracts/run-fold';
import { useEffect, useMemo, useReducer, useRef } from 'react';
import { usePosition } from '../../data/router.js';
import { client } from '../../data/gateway.js';
import { HistoryParts } from '../../data/history-parts.js';
import { head } from '../../data/live-log.js';
import { shareEqual } from '../../data/share-equal.js';
import { useOutdated } from '../../data/use-read.js';

export type Run = RouteReply<'getRun'>;
type History = RouteReply<'readRunHistory'>;

const EVENTS = 1_000;

/** A run as of a dragged position. */
export interface ScrubbedRun {
  /** Position of the page for which it was folded; null for the present. */
  readonly at: number | null;
  /** Null if the run had not started. */
  readonly run: Run | null;
}

/** Reads parts of the history of a run when a position asks for them. */
const useParts = (runId: string) => {
  const [round, refresh] = useReducer((count: number) => count + 1, 0);
  const parts = useRef<HistoryParts<History> | null>(null);
  useEffect(() => {
    const made = new HistoryParts<History>(
      (from, signal) =>
        client.http.readRunHistory({ params: { id: runId }, query: { from, limit: EVENTS }, signal }),
      refresh,
    );
    parts.current = made;
    refresh();
    return () => made.close();
  }, [runId]);
  return { parts, round };
};

/**
 * Folds a run as of the position while it is dragged, without a request for each position. Returns
 * the last folded run while its part of the history is read, and at rest; null before the first.
 * `isBehind` is true while a part is read.
 */
export const useScrubbedRun = (runId: string, isDragged: boolean) => {
  const at = usePosition();
  const { parts, round } = useParts(runId);
  const last = useRef<(ScrubbedRun & { readonly runId: string }) | null>(null);
  const found = useMemo(() => {
    if (!isDragged) return null;
    const position = at ?? head.get() ?? 0;
    const part = parts.current?.find(position);
    return part ? { run: foldRunHistory(part, position) } : null;
  }, [at, round, isDragged, parts]);
  const kept = last.current?.runId === runId ? last.current : null;
  if (!found) last.current = kept;
  // Nodes that have not changed keep their objects, so that only changed rows render.
  else last.current = { runId, at, run: shareEqual(kept?.run, found.run) as Run | null };
  const isBehind = isDragged && found === null;
  useOutdated(isBehind);
  return { scrubbed: last.current as ScrubbedRun | null, isBehind };
};
