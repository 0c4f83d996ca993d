import { sessionStream } from '@antiphon/contracts/agent';
import type { ExportFormat, SessionExportHeader } from '@antiphon/contracts/log';
import { canonicalJson, verifyChain } from '@antiphon/event-store';
import type { ChainStart, EventStore, RecordedEvent } from '@antiphon/event-store';
import { bug, notFound } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import { hideDeletedTexts, type DeletedPart } from '../frames/deleted-parts.js';

type StreamReader = Pick<EventStore, 'readStreamPage'>;

/** Waits between two pages, so that small requests are served first. */
type Pause = () => Promise<void>;
const withoutPause: Pause = () => Promise.resolve();

/**
 * Bounds of one read. A page is hashed and rendered without a break for other requests. Each step
 * of theirs may wait for a page of every export.
 */
const PAGE = { limit: 40, maxBytes: 32 * 1024 };

/**
 * Reads the stored events of a session before a version, page by page, oldest first. Yields nothing
 * for an unknown session. Throws the store's error for an archived stream.
 */
async function* readSession(
  store: StreamReader,
  workspace: string,
  sessionId: string,
  {
    beforeVersion = Number.MAX_SAFE_INTEGER,
    pause,
  }: { readonly beforeVersion?: number; readonly pause: Pause },
): AsyncGenerator<readonly RecordedEvent[]> {
  let fromVersion = 1;
  for (;;) {
    const options = { fromVersion, beforeVersion, ...PAGE };
    const { events, hasMore } = await store.readStreamPage(workspace, sessionStream(sessionId), options);
    if (events.length > 0) yield events;
    if (!hasMore) return;
    fromVersion += events.length;
    await pause();
  }
}

const brokenChain = ({ streamId, streamVersion, eventId }: RecordedEvent, reason: string): Error =>
  bug(
    'LOG.CHAIN_BROKEN',
    `the event ${eventId} (${streamId}@${streamVersion}) is not what was appended: ${reason}. What to do: antiphon audit`,
    { data: { streamId, streamVersion, eventId } },
  );

/**
 * Reads a session's event stream up to a position of the log and verifies its hash chain. Throws
 * `GATEWAY.SESSION_NOT_FOUND`, and `LOG.CHAIN_BROKEN` with the first event that differs from what
 * was appended.
 */
export const verifySession = async (
  store: StreamReader,
  workspace: string,
  sessionId: string,
  upTo = Number.MAX_SAFE_INTEGER,
  pause = withoutPause,
): Promise<SessionExportHeader> => {
  let head: ChainStart | undefined;
  for await (const page of readSession(store, workspace, sessionId, { pause })) {
    const events = page.filter(({ position }) => position <= upTo);
    if (events.length === 0) break;
    const verdict = verifyChain(events, head);
    if (!verdict.isIntact) throw brokenChain(verdict.event, verdict.reason);
    head = { version: verdict.version, hash: verdict.hash };
  }
  if (!head) throw notFound('GATEWAY.SESSION_NOT_FOUND', `no session ${sessionId}`);
  return { kind: 'antiphon.session', format: 1, workspace, sessionId, head };
};

// RFC 8785, so that a session at a version gives the same bytes on any store and any release.
const toText = (value: unknown): string => canonicalJson(value as JsonObject);

/**
 * Yields the text of a verified session page by page, as JSON lines or as one document. Texts of
 * deleted parts are left out, and their events are marked.
 */
export async function* exportText(
  store: StreamReader,
  header: SessionExportHeader,
  format: ExportFormat,
  deleted: readonly DeletedPart[] = [],
  pause = withoutPause,
): AsyncGenerator<string> {
  const { workspace, sessionId, head } = header;
  const isLines = format === 'jsonl';
  yield isLines ? `${toText(header)}\n` : `${toText(header).slice(0, -1)},"events":[`;
  let isFirst = true;
  for await (const events of readSession(store, workspace, sessionId, {
    beforeVersion: head.version + 1,
    pause,
  })) {
    // One piece for a page: each piece is a write to the socket.
    const texts = events.map((stored) => toText(hideDeletedTexts(stored, deleted)));
    yield isLines ? texts.map((text) => `${text}\n`).join('') : `${isFirst ? '' : ','}${texts.join(',')}`;
    isFirst = false;
  }
  if (!isLines) yield ']}\n';
}
