import { replayRecord, type Divergence, type ReplayReport } from '@antiphon/agent-features/replay';
import type { SessionExport } from '@antiphon/contracts/log';
import { invalid } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../command-context.js';
import { fetchExport } from './export-session.js';
import { readExportFile } from './read-export.js';

interface ReplayCommandOptions {
  readonly strict?: boolean;
  readonly turn?: string;
  readonly from?: string;
  readonly maxIterations?: string;
}

/** Named at most, where the first is not the end of it. */
const MAX_NAMED = 20;

const indent = (value: unknown): string => JSON.stringify(value, null, 2).replace(/^/gm, '    ');

const renderDivergence = ({ message, turnId, recorded, produced }: Divergence): string =>
  [
    `DIVERGES ${message}`,
    ...(turnId === null ? [] : [`  turn ${turnId}`]),
    `  recorded ${recorded.type}, hash ${recorded.hash}`,
    indent(recorded.data),
    produced === null ? '  replayed: no event' : `  replayed ${produced.type}, hash ${produced.hash}`,
    ...(produced === null ? [] : [indent(produced.data)]),
  ].join('\n');

const render = (report: ReplayReport): string => {
  const { ok, sessionId, turnId, inputs, decisions, head, divergences } = report;
  const what = `${turnId === null ? `session ${sessionId}` : `turn ${turnId}`}: ${inputs} recorded inputs, ${decisions} decisions, no provider or tool call`;
  return [
    ...divergences.map(renderDivergence),
    ok ? `${what}; every event has the hash that it was recorded with, up to ${head.slice(0, 16)}…` : what,
  ].join('\n');
};

const recordOf = async (
  { gateway, cwd }: CommandContext,
  session: string | undefined,
  from: string | undefined,
): Promise<SessionExport> => {
  if (from === undefined && session === undefined)
    throw invalid('CLI.USAGE', 'say which session to replay, or name an exported one with --from');
  if (from === undefined) return (await fetchExport(gateway(), session ?? '')).record;
  const record = readExportFile(cwd, from);
  if (session !== undefined && session !== record.sessionId)
    throw invalid('CLI.USAGE', `${from} is of session ${record.sessionId}`);
  return record;
};

const rulesOf = ({ maxIterations }: ReplayCommandOptions): { maxIterations?: number } => {
  if (maxIterations === undefined) return {};
  if (/^[1-9]\d{0,5}$/.test(maxIterations)) return { maxIterations: Number(maxIterations) };
  throw invalid('CLI.USAGE', `--max-iterations ${maxIterations}: say a number from 1`);
};

const replay = async (
  context: CommandContext,
  session: string | undefined,
  options: ReplayCommandOptions,
): Promise<void> => {
  const rules = rulesOf(options);
  const record = await recordOf(context, session, options.from);
  const turn = options.turn === undefined ? {} : { turnId: options.turn };
  const report = replayRecord(record, { ...turn, rules, limit: options.strict ? 1 : MAX_NAMED });
  context.output.result(report, render(report));
  if (options.strict && !report.ok) process.exitCode = 1;
};

/** `antiphon session replay [session] --strict [--turn ID] [--from FILE]` */
export const addReplay = (session: Command, context: ContextOf): void => {
  session
    .command('replay [session]')
    .description('drive the rules by what was recorded, and compare each event by its hash')
    .option('--strict', 'stop at the first event that differs, show both sides, and exit with 1')
    .option('--turn <id>', 'compare this turn alone')
    .option('--from <file>', 'an exported session instead of one of a running stack')
    .option('--max-iterations <n>', 'what another bound of model calls in a turn would have made of it')
    .addHelpText(
      'after',
      '\nNo provider and no tool is called: their answers, the times and the ids come from the record.\n\nExamples:\n  antiphon session replay 0d6c… --strict\n  antiphon session replay --from talk.jsonl --strict --json | jq .divergences[0]',
    )
    .action((id: string | undefined, options: ReplayCommandOptions, command: Command) =>
      replay(context(command), id, options),
    );
};
