import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { SessionExport } from '@antiphon/contracts/log';
import type { CommandContext } from '../output.js';
import {
  compareSessions,
  type Compared,
  type SessionComparison,
  type TurnPair,
  type TurnSummary,
} from './compare-sessions.js';
import { fetchExport, readExportFile } from './export-session.js';

const MAX_SHOWN = 2_000;

const renderTool = ({ name, input, outcome, content }: TurnSummary['tools'][number]): string =>
  `${name} ${JSON.stringify(input)} = ${outcome === 'completed' ? content : `[${outcome}] ${content}`}`;

const renderField = (turn: TurnSummary, field: Compared): string => {
  if (field === 'tools') return turn.tools.map(renderTool).join('\n') || '(no tool)';
  if (field === 'models') return turn.models.join(', ') || '(none)';
  if (field !== 'usage') return turn[field] ?? '(none)';
  const { inputTokens, outputTokens, costMicroUsd } = turn.usage;
  return `${inputTokens} in, ${outputTokens} out, ${costMicroUsd / 1e6} USD`;
};

const renderSide = (mark: string, turn: TurnSummary, field: Compared): string =>
  renderField(turn, field).slice(0, MAX_SHOWN).replace(/^/gm, `  ${mark} `);

const renderPair = ({ a, b, differs }: TurnPair, index: number): string => {
  const title = `turn ${index + 1}: ${JSON.stringify((a ?? b)?.content.slice(0, 80))}`;
  if (a === null || b === null) return `${title}  only in ${a === null ? 'the second' : 'the first'}`;
  if (differs.length === 0) return `${title}  same`;
  return [
    title,
    ...differs.flatMap((field) => [`  ${field}`, renderSide('-', a, field), renderSide('+', b, field)]),
  ].join('\n');
};

/** Renders the comparison of two sessions, turn by turn. */
export const renderComparison = ({ turns, same }: SessionComparison): string =>
  [...turns.map(renderPair), same ? 'no turn differs' : ''].filter(Boolean).join('\n');

/** Returns true if an argument is the file of an export, and not an id. */
export const isExportFile = (cwd: string, fileOrId: string): boolean => existsSync(resolve(cwd, fileOrId));

/** Returns a session by its id, or by the file of its export. */
export const loadSession = async ({ http, cwd }: CommandContext, fileOrId: string): Promise<SessionExport> =>
  isExportFile(cwd, fileOrId)
    ? readExportFile(cwd, fileOrId)
    : (await fetchExport(await http(), fileOrId)).record;

/** Compares two sessions, each given by its id or by the file of its export. */
export const diffSessions = async (context: CommandContext, a: string, b: string): Promise<void> => {
  const comparison = compareSessions(await loadSession(context, a), await loadSession(context, b));
  context.output.result(comparison, renderComparison(comparison));
};
