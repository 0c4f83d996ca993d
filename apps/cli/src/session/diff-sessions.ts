import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { SessionExport } from '@antiphon/contracts/log';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../command-context.js';
import {
  compareSessions,
  type Compared,
  type SessionComparison,
  type TurnPair,
  type TurnSummary,
} from './compare-sessions.js';
import { fetchExport } from './export-session.js';
import { readExportFile } from './read-export.js';

const MAX_SHOWN = 2_000;

const showTool = ({ name, input, outcome, content }: TurnSummary['tools'][number]): string =>
  `${name} ${JSON.stringify(input)} = ${outcome === 'completed' ? content : `[${outcome}] ${content}`}`;

const show = (turn: TurnSummary, what: Compared): string => {
  if (what === 'tools') return turn.tools.map(showTool).join('\n') || '(no tool)';
  if (what === 'models') return turn.models.join(', ') || '(none)';
  if (what !== 'usage') return turn[what] ?? '(none)';
  const { inputTokens, outputTokens, costMicroUsd } = turn.usage;
  return `${inputTokens} in, ${outputTokens} out, ${costMicroUsd / 1e6} USD`;
};

const side = (mark: string, turn: TurnSummary, what: Compared): string =>
  show(turn, what).slice(0, MAX_SHOWN).replace(/^/gm, `  ${mark} `);

const renderPair = ({ a, b, differs }: TurnPair, index: number): string => {
  const title = `turn ${index + 1}: ${JSON.stringify((a ?? b)?.content.slice(0, 80))}`;
  if (a === null || b === null) return `${title}  only in ${a === null ? 'the second' : 'the first'}`;
  if (differs.length === 0) return `${title}  same`;
  return [title, ...differs.flatMap((what) => [`  ${what}`, side('-', a, what), side('+', b, what)])].join(
    '\n',
  );
};

/** Two sessions side by side, as text. */
export const renderComparison = ({ turns, same }: SessionComparison): string =>
  [...turns.map(renderPair), same ? 'no turn differs' : ''].filter(Boolean).join('\n');

const recordOf = async ({ gateway, cwd }: CommandContext, what: string): Promise<SessionExport> =>
  existsSync(resolve(cwd, what)) ? readExportFile(cwd, what) : (await fetchExport(gateway(), what)).record;

const diff = async (context: CommandContext, a: string, b: string): Promise<void> => {
  const comparison = compareSessions(await recordOf(context, a), await recordOf(context, b));
  context.output.result(comparison, renderComparison(comparison));
};

/** `antiphon session diff <a> <b>` */
export const addDiff = (session: Command, context: ContextOf): void => {
  session
    .command('diff <a> <b>')
    .description('two sessions, or exported ones, turn by turn: text, tool calls, usage that differ')
    .addHelpText(
      'after',
      '\nTurns of a what-if stand beside those that they are made again of; those of a fork beside the origin’s from the cut on.\n\nExamples:\n  antiphon session diff 0d6c… 77aa…\n  antiphon session diff before.jsonl after.jsonl --json | jq .same',
    )
    .action((a: string, b: string, _: unknown, command: Command) => diff(context(command), a, b));
};
