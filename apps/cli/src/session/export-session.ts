import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { SessionExport } from '@antiphon/contracts/log';
import type { ExportFormat } from '@antiphon/contracts/log';
import { verifyChain } from '@antiphon/event-store';
import type { ChainStart, ChainVerdict, RecordedEvent } from '@antiphon/event-store';
import { invalid, rejected } from '@antiphon/kernel';
import type { HttpClient } from '@antiphon/client/http';
import { LONG_TIMEOUT_MS } from '../connection/gateway-http.js';
import type { CommandContext } from '../output.js';

/** Parses an export: JSON lines (a header, then events), or one document. Throws `CLI.USAGE`. */
const parseExport = (text: string, source: string): SessionExport => {
  try {
    const [first = '', ...lines] = text.trimEnd().split('\n');
    const header = JSON.parse(first) as { events?: unknown };
    return SessionExport.parse(
      header.events === undefined
        ? { ...header, events: lines.map((line) => JSON.parse(line) as unknown) }
        : header,
    );
  } catch (cause) {
    throw invalid(
      'CLI.USAGE',
      `${source} is not an exported session: ${(cause as Error).message}. What to do: antiphon session export <session> --out FILE`,
      { cause },
    );
  }
};

/** Reads an exported session from a file. Throws `CLI.USAGE`. */
export const readExportFile = (cwd: string, file: string): SessionExport => {
  try {
    return parseExport(readFileSync(resolve(cwd, file), 'utf8'), file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code?.startsWith('E') !== true) throw cause;
    throw invalid('CLI.USAGE', `${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
};

const parseFormat = (format: string): ExportFormat => {
  if (format === 'jsonl' || format === 'json') return format;
  throw invalid('CLI.USAGE', `--format ${format}: expected jsonl or json`);
};

/** Verifies events in order. The hash of one without its deleted texts is taken as it is. */
const verifyEvents = (events: SessionExport['events']): ChainVerdict => {
  let at: ChainStart | undefined;
  let from = 0;
  for (const [index, event] of events.entries()) {
    if (event.withheld === undefined) continue;
    const verdict = verifyChain(events.slice(from, index) as readonly RecordedEvent[], at);
    if (!verdict.isIntact) return verdict;
    const { streamVersion: version, hash } = event;
    if (version !== verdict.version + 1)
      return {
        isIntact: false,
        event: event as RecordedEvent,
        reason: `version ${version} follows ${verdict.version}`,
      };
    [at, from] = [{ version, hash }, index + 1];
  }
  return verifyChain(events.slice(from) as readonly RecordedEvent[], at);
};

/**
 * Verifies the hash chain again on this side, so that the received events are the appended ones.
 */
const verifyExport = ({ events, head }: SessionExport): void => {
  const verdict = verifyEvents(events);
  if (!verdict.isIntact) {
    const { eventId, streamVersion } = verdict.event;
    throw rejected('LOG.CHAIN_BROKEN', `event ${streamVersion} (${eventId}): ${verdict.reason}`);
  }
  if (verdict.hash !== head.hash)
    throw rejected('LOG.CHAIN_BROKEN', "the last event's hash differs from the hash in the header");
};

/** Downloads a session's export and verifies its hash chain. Returns its text and its content. */
export const fetchExport = async (
  http: HttpClient,
  sessionId: string,
  format: ExportFormat = 'jsonl',
  includesDeleted = false,
): Promise<{ text: string; record: SessionExport }> => {
  const text = await http.exportSession({
    params: { id: sessionId },
    query: { format, deleted: includesDeleted ? 'include' : undefined },
    timeoutMs: LONG_TIMEOUT_MS,
  });
  const record = parseExport(text, 'the response of the gateway');
  verifyExport(record);
  return { text, record };
};

export interface ExportOptions {
  readonly out?: string;
  readonly format: string;
  readonly includeDeleted?: boolean;
}

/** Prints a session's events, or writes them to a file. */
export const exportSession = async (
  { output, http, cwd }: CommandContext,
  session: string,
  options: ExportOptions,
): Promise<void> => {
  const { format, includeDeleted } = options;
  const { text, record } = await fetchExport(await http(), session, parseFormat(format), includeDeleted);
  if (options.out === undefined) return void process.stdout.write(text);
  const file = resolve(cwd, options.out);
  writeFileSync(file, text, { mode: 0o600 });
  const { sessionId, head } = record;
  const withheld = record.events.filter((event) => event.withheld !== undefined).length;
  const note = withheld === 0 ? '' : `; ${withheld} without the texts of deleted messages`;
  output.result(
    { sessionId, file, events: head.version, head: head.hash, withheld },
    `${head.version} events, chain whole up to ${head.hash.slice(0, 16)}…, in ${options.out}${note}`,
  );
};
