import type { ExportFormat, SessionExportHeader } from '@antiphon/contracts/log';
import { canonicalJson, verifyChain } from '@antiphon/event-store';
import type { ChainStart, RecordedEvent } from '@antiphon/event-store';
import { bug, notFound } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import { readSession } from './read-session.js';
import type { ReadStream } from './read-session.js';

const broken = ({ streamId, streamVersion, eventId }: RecordedEvent, reason: string): Error =>
  bug(
    'LOG.CHAIN_BROKEN',
    `the event ${eventId} (${streamId}@${streamVersion}) is not what was appended: ${reason}. What to do: antiphon audit`,
    { data: { streamId, streamVersion, eventId } },
  );

/**
 * Reads a session's event stream once and holds it against its hash chain. Throws `GATEWAY.SESSION_NOT_FOUND`, and
 * `LOG.CHAIN_BROKEN` naming the first event that is not what was appended.
 */
export const verifySession = async (
  store: ReadStream,
  workspace: string,
  sessionId: string,
): Promise<SessionExportHeader> => {
  let head: ChainStart | undefined;
  for await (const events of readSession(store, workspace, sessionId)) {
    const verdict = verifyChain(events, head);
    if (!verdict.isIntact) throw broken(verdict.event, verdict.reason);
    head = { version: verdict.version, hash: verdict.hash };
  }
  if (!head) throw notFound('GATEWAY.SESSION_NOT_FOUND', `no session ${sessionId}`);
  return { kind: 'antiphon.session', format: 1, workspace, sessionId, head };
};

// RFC 8785: the same session at the same version gives the same bytes, whichever store or version of it reads.
const textOf = (value: unknown): string => canonicalJson(value as JsonObject);

/** The text of a verified session, piece by piece: JSON lines, or one document. */
export async function* exportText(
  store: ReadStream,
  header: SessionExportHeader,
  format: ExportFormat,
): AsyncGenerator<string> {
  const { workspace, sessionId, head } = header;
  const isLines = format === 'jsonl';
  yield isLines ? `${textOf(header)}\n` : `${textOf(header).slice(0, -1)},"events":[`;
  let first = true;
  for await (const events of readSession(store, workspace, sessionId, head.version)) {
    const lines = events.map((event) => (isLines ? `${textOf(event)}\n` : textOf(event)));
    yield isLines ? lines.join('') : `${first ? '' : ','}${lines.join(',')}`;
    first = false;
  }
  if (!isLines) yield ']}\n';
}
