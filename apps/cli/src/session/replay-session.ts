import { replayRecord, type Divergence, type ReplayReport } from '@antiphon/orchestration-features/replay';
import type { SessionExport } from '@antiphon/contracts/log';
import { invalid, rejected } from '@antiphon/kernel';
import type { CommandContext } from '../output.js';
import { fetchExport, readExportFile } from './export-session.js';

export interface ReplayOptions {
  readonly strict?: boolean;
  readonly turn?: string;
  readonly from?: string;
  readonly maxIterations?: string;
}

/** Maximum number of divergences that are printed without `--strict`. */
const MAX_DIVERGENCES = 20;

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
  const subject = turnId === null ? `session ${sessionId}` : `turn ${turnId}`;
  const summary = `${subject}: ${inputs} recorded inputs, ${decisions} decisions, no provider or tool call`;
  return [
    ...divergences.map(renderDivergence),
    ok ? `${summary}; every event has the hash that was recorded, up to ${head.slice(0, 16)}…` : summary,
  ].join('\n');
};

/** Throws for a record without the texts of deleted messages: its events have other hashes. */
const requireTexts = (record: SessionExport): SessionExport => {
  const withheld = record.events.filter((event) => event.withheld !== undefined).length;
  if (withheld === 0) return record;
  throw rejected(
    'REPLAY.TEXTS_WITHHELD',
    `${withheld} events lack the texts of deleted messages. What to do: antiphon session export ${record.sessionId} --include-deleted --out FILE, and replay it --from FILE`,
  );
};

const loadRecord = async (
  { http, cwd }: CommandContext,
  session: string | undefined,
  file: string | undefined,
): Promise<SessionExport> => {
  if (file === undefined) {
    if (session !== undefined) return requireTexts((await fetchExport(await http(), session)).record);
    throw invalid('CLI.USAGE', 'name the session to replay, or an exported one with --from');
  }
  const record = readExportFile(cwd, file);
  if (session !== undefined && session !== record.sessionId)
    throw invalid('CLI.USAGE', `${file} contains session ${record.sessionId}, not ${session}`);
  return requireTexts(record);
};

const parseRules = ({ maxIterations }: ReplayOptions): { maxIterations?: number } => {
  if (maxIterations === undefined) return {};
  if (/^[1-9]\d{0,5}$/.test(maxIterations)) return { maxIterations: Number(maxIterations) };
  throw invalid('CLI.USAGE', `--max-iterations ${maxIterations}: expected a number from 1`);
};

/** Replays a session's decisions and compares each event by its hash. */
export const replaySession = async (
  context: CommandContext,
  session: string | undefined,
  options: ReplayOptions,
): Promise<void> => {
  const rules = parseRules(options);
  const record = await loadRecord(context, session, options.from);
  const turn = options.turn === undefined ? {} : { turnId: options.turn };
  const report = replayRecord(record, { ...turn, rules, limit: options.strict ? 1 : MAX_DIVERGENCES });
  context.output.result(report, render(report));
  if (options.strict && !report.ok) process.exitCode = 1;
};
