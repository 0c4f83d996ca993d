import { withMessage } from '@antiphon/contracts/causes';
import { foldRun, RunEvent, runStream, type HistoryEvent, type RunHistory } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { requirePosition, type EventStore, type RecordedEvent } from '@antiphon/event-store';
import { bug, notFound } from '@antiphon/kernel';

/** Maximum size of the data of a page of events as JSON, bytes. The largest event has 1 MiB. */
const PAGE_BYTES = 4 * 1024 * 1024;

export interface RunHistoryRequest {
  readonly workspace: string;
  readonly runId: string;
  /** Position of the snapshot. Default: 0, before the run started. */
  readonly from?: number | undefined;
  /** Last position. Default: the head of the log. */
  readonly to?: number | undefined;
  /** Maximum number of events. */
  readonly limit: number;
}

const parseEvent = (recorded: RecordedEvent): RunEvent => {
  const { data, error } = RunEvent.safeParse(upcast(recorded));
  if (error)
    throw bug('WORKFLOW.EVENT_UNKNOWN', `this version does not know ${recorded.type}`, { cause: error });
  return data;
};

const toReadForm = (event: RunEvent): HistoryEvent['event'] => ({
  ...event,
  data: withMessage(event.data) as HistoryEvent['event']['data'],
});

const toHistoryEvent = (recorded: RecordedEvent): HistoryEvent => ({
  version: recorded.streamVersion,
  position: recorded.position,
  recordedAt: recorded.recordedAt,
  event: toReadForm(parseEvent(recorded)),
});

/** Returns the first events that a page has room for. */
const firstPage = (events: readonly RecordedEvent[], limit: number): readonly RecordedEvent[] => {
  let bytes = 0;
  const limited = events.slice(0, limit);
  const end = limited.findIndex(({ data }) => {
    bytes += Buffer.byteLength(JSON.stringify(data));
    return bytes > PAGE_BYTES;
  });
  return end < 0 ? limited : limited.slice(0, end);
};

/**
 * Returns a run as of a position, and its events after it, so that a client folds any position
 * between. Throws `RUN.NOT_FOUND` and `LOG.POSITION_AHEAD`.
 */
export const readRunHistory = async (
  store: EventStore,
  { workspace, runId, limit, ...range }: RunHistoryRequest,
): Promise<RunHistory> => {
  const head = await store.headPosition();
  const to = requirePosition(range.to, head);
  const from = Math.min(requirePosition(range.from ?? 0, head), to);
  // A run is small enough to read whole: it has at most 64 nodes.
  const recorded = await store.readStream(workspace, runStream(runId));
  const known = recorded.filter(({ position }) => position <= to);
  if (known.length === 0) throw notFound('RUN.NOT_FOUND', `there is no run ${runId}`);
  const after = known.filter(({ position }) => position > from);
  const events = firstPage(after, limit);
  const isLast = events.length === after.length;
  const before = known.slice(0, known.length - after.length);
  return {
    ...{ from, position: isLast ? to : (events.at(-1)?.position ?? to), head, isLast },
    snapshot: { run: foldRun(before.map(parseEvent)) },
    events: events.map(toHistoryEvent),
  };
};
