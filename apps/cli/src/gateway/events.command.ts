import type { RouteReply, RouteRequest } from '@antiphon/client';
import { invalid, sleep } from '@antiphon/kernel';
import type { Command } from 'commander';
import { nextPageLine } from '../connection/gateway-http.js';
import type { ProveCommandOptions, VerifyCommandOptions } from '../audit/prove-event.js';
import type { CommandContext, ContextOf } from '../output.js';
import type { ArchiveCommandOptions, RestoreCommandOptions } from '../backup/archive-events.js';

interface EventFilter {
  readonly type?: string;
  readonly agent?: string;
  readonly stream?: string;
  readonly severity?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: string;
  readonly cursor?: string;
}

type LoggedEvent = RouteReply<'readEvents'>['events'][number];
type Query = RouteRequest<'readEvents'>['query'];

const MAX_WIDTH = 160;
const POLL_MS = 500;

const queryOf = (filter: EventFilter): Query => {
  const { type, agent, stream, severity, since, until, limit, cursor } = filter;
  return { type, agent, stream, severity, since, until, limit, cursor } as Query;
};

const render = ({ position, recordedAt, streamId, streamVersion, type, data }: LoggedEvent): string => {
  const place = `${String(position).padStart(7)} ${recordedAt} ${streamId}@${streamVersion}`;
  return `${place} ${type} ${JSON.stringify(data)}`.slice(0, MAX_WIDTH);
};

const list = async ({ output, http }: CommandContext, filter: EventFilter): Promise<void> => {
  const page = await (await http()).readEvents({ query: queryOf(filter) });
  output.result(page, [...page.events.map(render), ...nextPageLine(page.nextCursor)].join('\n'));
};

const show = async ({ output, http }: CommandContext, given: string): Promise<void> => {
  const position = Number(given);
  if (!Number.isSafeInteger(position) || position < 1)
    throw invalid('CLI.USAGE', `"${given}" is no position of the log`);
  const { events } = await (await http()).readEvents({ query: { after: position - 1, limit: 1 } });
  const event = events.find((each) => each.position === position);
  if (!event) throw invalid('CLI.USAGE', `no event of this workspace is at position ${position}`);
  output.result(event, JSON.stringify(event, null, 2));
};

/**
 * Prints the events in the log, then new ones as they are appended, until the process is stopped.
 */
const tail = async (
  { output, http }: CommandContext,
  filter: EventFilter,
  isOnce: boolean,
): Promise<void> => {
  const { encodeCursor } = await import('@antiphon/contracts/log');
  const { readEvents } = await http();
  let { cursor } = filter;
  for (;;) {
    const page = await readEvents({ query: queryOf({ ...filter, cursor }) });
    for (const event of page.events) output.line(event, render(event));
    const last = page.events.at(-1);
    if (last) cursor = encodeCursor(last.position);
    if (page.nextCursor === null && isOnce) return;
    if (page.nextCursor === null) await sleep(POLL_MS);
  }
};

const addFilters = (command: Command): Command =>
  command
    .option('--type <name>', 'event type, such as TurnCompleted')
    .option('--agent <id>', "only this agent's sessions")
    .option('--stream <id>', 'only this event stream')
    .option('--severity <level>', 'info, warning or error')
    .option('--since <time>', 'ISO 8601')
    .option('--until <time>', 'ISO 8601, exclusive')
    .option('--limit <n>', 'events per page, 1 to 1000', '100')
    .option('--cursor <cursor>', 'start after this page');

const addFolder = (command: Command): Command =>
  command.option(
    '--folder <path>',
    'the folder of archive files (default: ANTIPHON_ARCHIVE_FOLDER, else `archives` in the home)',
  );

const ARCHIVE_HELP = [
  '\nOpen sessions and runs stay in the log, and so do workflow definitions and session keys.',
  'Keep the files: audits and rebuilds read them.',
  '\nExamples:',
  '  antiphon events archive --before 2026-01-01',
  '  antiphon events archive --before 1500000 --folder /mnt/archive',
  '  antiphon events archive --before 2026-01-01 --workspace acme',
].join('\n');

const addArchives = (events: Command, context: ContextOf): void => {
  const load = () => import('../backup/archive-events.js');
  addFolder(events.command('archive').description('move old, closed event streams from the log to files'))
    .requiredOption('--before <date|position>', 'only streams whose last event is older')
    .option('--workspace <name>', 'only streams of this workspace (default: all)')
    .addHelpText('after', ARCHIVE_HELP)
    .action(async (options: ArchiveCommandOptions, command: Command) =>
      (await load()).archive(context(command), options),
    );
  events
    .command('archives')
    .description('list the archive files')
    .addHelpText('after', '\nExample:\n  antiphon events archives --json | jq .archives[].file')
    .action(async (_: unknown, command: Command) => (await load()).list(context(command)));
  addFolder(
    events.command('restore [archive]').description('put archived events back into the log unchanged'),
  )
    .option('--all', 'restore every archive')
    .addHelpText(
      'after',
      '\nExamples:\n  antiphon events restore 7d0f6c1e-5a43-4f0e-9a3f-0d1c2b3a4958\n  antiphon events restore --all   # before a projection is rebuilt',
    )
    .action(async (id: string | undefined, options: RestoreCommandOptions, command: Command) =>
      (await load()).restore(context(command), id, options),
    );
};

const PROOF_HELP = [
  '\nThe proof contains the event with its content. The public key verifies it offline.',
  '\nExamples:',
  '  antiphon events prove 0192f0c1-7a2b-7c3d-8e4f-000000000007 --out turn.proof.json',
  '  antiphon events verify turn.proof.json --key log-signing.pub',
].join('\n');

const addProofs = (events: Command, context: ContextOf): void => {
  const load = () => import('../audit/prove-event.js');
  events
    .command('prove <event>')
    .description('write a file that proves an event to be in the signed log')
    .option('--out <file>', 'the file to write (default: EVENT.proof.json)')
    .option('--roots <file>', 'signed roots (default: those of this home)')
    .option('--key <file>', 'Ed25519 key of the roots, PEM (default: that of this home)')
    .option('--archives <folder>', 'the folder of archive files (default: as for `antiphon events archive`)')
    .addHelpText('after', PROOF_HELP)
    .action(async (event: string, options: ProveCommandOptions, command: Command) =>
      (await load()).runProve(context(command), event, options),
    );
  events
    .command('verify <file>')
    .description('verify a proof offline, with the public key alone')
    .option('--key <file>', 'Ed25519 public key, PEM (default: that of this home)')
    .option('--roots <file>', 'a copy of the signed roots, which must contain the root of the proof')
    .addHelpText('after', PROOF_HELP)
    .action(async (file: string, options: VerifyCommandOptions, command: Command) =>
      (await load()).runVerify(context(command), file, options),
    );
};

/** Adds `antiphon events list|show|tail|archive|archives|restore|prove|verify`. */
export const addEvents = (program: Command, context: ContextOf): void => {
  const events = program.command('events').description('read the log; archive old events and restore them');
  addArchives(events, context);
  addProofs(events, context);
  addFilters(events.command('list').description('print one page of the log, oldest event first'))
    .addHelpText('after', '\nExample:\n  antiphon events list --severity error --since 2026-11-21T00:00:00Z')
    .action((filter: EventFilter, command: Command) => list(context(command), filter));
  events
    .command('show <position>')
    .description('print one event of the log with its hash')
    .addHelpText('after', '\nExample:\n  antiphon events show 1024')
    .action((position: string, _: unknown, command: Command) => show(context(command), position));
  addFilters(events.command('tail').description('print the log from its start and follow it'))
    .option('--once', 'stop at the end of the log')
    .addHelpText('after', '\nExample:\n  antiphon events tail --type ToolCallCompleted --json')
    .action((filter: EventFilter & { once?: boolean }, command: Command) => {
      if (filter.until !== undefined && filter.once !== true)
        throw invalid('CLI.USAGE', '--until needs --once: a tail that follows the log does not end');
      return tail(context(command), filter, filter.once === true);
    });
};
