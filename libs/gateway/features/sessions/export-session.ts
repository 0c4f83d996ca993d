import { sessionStream } from '@antiphon/contracts/agent';
import type { ExportFormat, SessionExportHeader } from '@antiphon/contracts/log';
import { canonicalJson, verifyChain } from '@antiphon/event-store';
import type { ChainStart, EventStore, RecordedEvent } from '@antiphon/event-store';
import { bug, notFound } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import { hideDeletedTexts, type DeletedPart } from '../events/deleted-parts.js';

type StreamReader = Pick<EventStore, 'readStreamPage'>;

/** Bounds of one read. The hashes of a page are checked without a break for other requests. */
const PAGE = { limit: 200, maxBytes: 64 * 1024 };

/**
 * Reads the stored events of a session before a version, page by page, oldest first. Yields nothing
 * for an unknown session. Throws the store's error for an archived stream.
 */
async function* readSession(
  store: StreamReader,
  workspace: string,
  sessionId: string,
  beforeVersion: number = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<readonly RecordedEvent[]> {
  let fromVersion = 1;
  for (;;) {
    const options = { fromVersion, beforeVersion, ...PAGE };
    const { events, hasMore } = await store.readStreamPage(workspace, sessionStream(sessionId), options);
    if (events.length > 0) yield events;
    if (!hasMore) return;
    fromVersion += events.length;
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
): Promise<SessionExportHeader> => {
  let head: ChainStart | undefined;
  for await (const page of readSession(store, workspace, sessionId)) {
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
 * Yields the text of a verified session piece by piece, as JSON lines or as one document. Texts of
 * deleted parts are left out, and their events are marked.
 */
export async function* exportText(
  store: StreamReader,
  header: SessionExportHeader,
  format: ExportFormat,
  deleted: readonly DeletedPart[] = [],
): AsyncGenerator<string> {
  const { workspace, sessionId, head } = header;
  const isLines = format === 'jsonl';
  yield isLines ? `${toText(header)}\n` : `${toText(header).slice(0, -1)},"events":[`;
  let isFirst = true;
  for await (const events of readSession(store, workspace, sessionId, head.version + 1)) {
    for (const stored of events) {
      const event = hideDeletedTexts(stored, deleted);
      yield isLines ? `${toText(event)}\n` : `${isFirst ? '' : ','}${toText(event)}`;
      isFirst = false;
    }
  }
  if (!isLines) yield ']}\n';
}
