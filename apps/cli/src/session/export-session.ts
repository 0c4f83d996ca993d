import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ExportFormat, SessionExport } from '@antiphon/contracts/log';
import { verifyChain } from '@antiphon/event-store';
import type { RecordedEvent } from '@antiphon/event-store';
import { invalid, rejected } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../command-context.js';
import type { GatewayAddress } from '../connection/gateway-address.js';
import { getText } from '../connection/http-client.js';
import { parseExport } from './read-export.js';

interface ExportOptions {
  readonly out?: string;
  readonly format: string;
}

const formatOf = (format: string): ExportFormat => {
  if (format === 'jsonl' || format === 'json') return format;
  throw invalid('CLI.USAGE', `--format ${format}: say jsonl or json`);
};

/** Held against the chain here too: what arrived is what was appended. */
const requireWhole = ({ events, head }: SessionExport): void => {
  const verdict = verifyChain(events as readonly RecordedEvent[]);
  if (!verdict.whole) {
    const { eventId, streamVersion } = verdict.event;
    throw rejected('LOG.CHAIN_BROKEN', `event ${streamVersion} (${eventId}): ${verdict.reason}`);
  }
  if (verdict.hash !== head.hash)
    throw rejected('LOG.CHAIN_BROKEN', 'the export does not end where its header says');
};

/** The text of an exported session as the gateway gives it, and what it says. */
export const fetchExport = async (
  gateway: GatewayAddress,
  sessionId: string,
  format: ExportFormat = 'jsonl',
): Promise<{ text: string; record: SessionExport }> => {
  const path = `/api/v1/sessions/${encodeURIComponent(sessionId)}/export?format=${format}`;
  const text = await getText(gateway, path);
  const record = parseExport(text, `what ${gateway.url} answers`);
  requireWhole(record);
  return { text, record };
};

const exportSession = async (
  { output, gateway, cwd }: CommandContext,
  session: string,
  options: ExportOptions,
): Promise<void> => {
  const { text, record } = await fetchExport(gateway(), session, formatOf(options.format));
  if (options.out === undefined) return void process.stdout.write(text);
  const file = resolve(cwd, options.out);
  writeFileSync(file, text, { mode: 0o600 });
  const { sessionId, head } = record;
  output.result(
    { sessionId, file, events: head.version, head: head.hash },
    `${head.version} events, chain whole up to ${head.hash.slice(0, 16)}…, in ${options.out}`,
  );
};

/** `antiphon session export <session> [--out FILE] [--format jsonl|json]` */
export const addExport = (session: Command, context: ContextOf): void => {
  session
    .command('export <session>')
    .description('the events of a session with their hashes, held against their chain')
    .option('--out <file>', 'write them there (mode 600) instead of standard output')
    .option('--format <format>', 'jsonl: a header and a line for each event; json: one document', 'jsonl')
    .addHelpText(
      'after',
      '\nThe same session gives the same bytes. What was said and answered is in it: keep it as you keep the database.\n\nExamples:\n  antiphon session export 0d6c… --out talk.jsonl\n  antiphon session export 0d6c… | jq -r .type',
    )
    .action((id: string, options: ExportOptions, command: Command) =>
      exportSession(context(command), id, options),
    );
};
