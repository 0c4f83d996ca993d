import type { Command } from 'commander';
import type { ContextOf } from '../output.js';
import type { ExportOptions } from './export-session.js';
import type { FindOptions } from './find-texts.js';
import type { ForkOptions, WhatIfOptions } from './fork-session.js';
import type { ListOptions, ShowOptions } from './list-sessions.js';
import type { ReplayOptions } from './replay-session.js';
import type { ResumeOptions } from './resume-session.js';

const addExport = (session: Command, context: ContextOf): void => {
  session
    .command('export <session>')
    .description("print a session's events with their hashes, after verifying the hash chain")
    .option('--out <file>', 'write them to this file (mode 600) instead of standard output')
    .option('--format <format>', 'jsonl: a header and a line per event; json: one document', 'jsonl')
    .option('--include-deleted', 'with the texts of deleted messages; needs the permission operations:write')
    .addHelpText(
      'after',
      '\nTwo exports of one session are the same bytes. An export contains all messages that were not deleted: protect it like the database.\n\nExamples:\n  antiphon session export 0d6c… --out talk.jsonl\n  antiphon session export 0d6c… | jq -r .type',
    )
    .action(async (id: string, options: ExportOptions, command: Command) =>
      (await import('./export-session.js')).exportSession(context(command), id, options),
    );
};

const addForkOptions = (command: Command): Command =>
  command
    .option('--at <n>', "cut after the event with this version (default: the session's end)")
    .option('--agent <id>', 'use another agent')
    .option('--provider <name>', "the model's provider in antiphon.toml (default: the agent's)")
    .option('--key <key>', 'an idempotency key: requests with the same key create one fork');

const addFork = (session: Command, context: ContextOf): void => {
  addForkOptions(session.command('fork <session>'))
    .description('create a session that continues from this one, with its recent turns and memory')
    .option('--model <name>', "use another model than the agent's")
    .addHelpText(
      'after',
      '\nThe cut must lie between two turns; without --at it lies after the last one. The origin does not change.\n\nExamples:\n  antiphon session fork 0d6c… --at 12\n  antiphon chat --session $(antiphon session fork 0d6c… --model gpt-4o) "and now?"',
    )
    .action(async (id: string, options: ForkOptions, command: Command) =>
      (await import('./fork-session.js')).forkSession(context(command), id, options),
    );
};

const addReplay = (session: Command, context: ContextOf): void => {
  session
    .command('replay [session]')
    .description('repeat the decisions on the recorded inputs, and compare each event by its hash')
    .option('--strict', 'stop at the first event that differs, print both, and exit with 1')
    .option('--turn <id>', 'compare only this turn')
    .option('--from <file>', 'replay an exported session; needs no gateway')
    .option('--max-iterations <n>', 'replay with another maximum of model calls per turn')
    .addHelpText(
      'after',
      '\nNo provider and no tool is called: their responses, the times and the ids come from the record.\n\nExamples:\n  antiphon session replay 0d6c… --strict\n  antiphon session replay --from talk.jsonl --strict --json | jq .divergences[0]',
    )
    .action(async (id: string | undefined, options: ReplayOptions, command: Command) =>
      (await import('./replay-session.js')).replaySession(context(command), id, options),
    );
};

const addWhatIf = (session: Command, context: ContextOf): void => {
  addForkOptions(session.command('whatif <session>'))
    .description('repeat turns with another model in a fork; tool results come from the record')
    .requiredOption('--model <name>', 'the model that is called, for real and within the budgets')
    .option('--turns <n>', 'number of turns after the cut to repeat', '1')
    .addHelpText(
      'after',
      '\nWithout --at the last turn is repeated. A tool call that the record lacks ends the turn: no tool runs.\n\nExamples:\n  antiphon session whatif 0d6c… --model gpt-4o --provider openai\n  antiphon session whatif 0d6c… --model claude-haiku --at 12 --turns 3 --json | jq .comparison.turns',
    )
    .action(async (id: string, options: WhatIfOptions, command: Command) =>
      (await import('./fork-session.js')).runWhatIf(context(command), id, options),
    );
};

const addDiff = (session: Command, context: ContextOf): void => {
  session
    .command('diff <a> <b>')
    .description('compare two sessions, or exports of sessions, turn by turn')
    .addHelpText(
      'after',
      '\nTurns of a what-if are compared with the turns that they repeat; turns of a fork with the origin’s after the cut.\n\nExamples:\n  antiphon session diff 0d6c… 77aa…\n  antiphon session diff before.jsonl after.jsonl --json | jq .same',
    )
    .action(async (a: string, b: string, _: unknown, command: Command) =>
      (await import('./diff-sessions.js')).diffSessions(context(command), a, b),
    );
};

const addExplain = (session: Command, context: ContextOf): void => {
  session
    .command('explain <session>')
    .description('show what each model call read from the prompt cache, and what made it read less')
    .addHelpText(
      'after',
      '\nThe session is an id or the file of an export.\n\nExample:\n  antiphon session explain 0d6c… --json | jq .calls[].causes',
    )
    .action(async (id: string, _: unknown, command: Command) =>
      (await import('./explain-prompts.js')).explainPrompts(context(command), id),
    );
};

const addResume = (session: Command, context: ContextOf): void => {
  session
    .command('resume <session>')
    .description('print the answer of a turn from an offset on, while it arrives')
    .option('--after <offset>', 'the last offset that was seen', '0')
    .addHelpText(
      'after',
      '\nIt ends with the turn. Ctrl-C in `antiphon chat` prints the command with the right offset.\n\nExample:\n  antiphon session resume 0d6c… --after 1048580',
    )
    .action(async (id: string, options: ResumeOptions, command: Command) =>
      (await import('./resume-session.js')).resumeSession(context(command), id, options),
    );
};

const addList = (session: Command, context: ContextOf): void => {
  session
    .command('list')
    .description('list sessions, the most recently active first')
    .option('--agent <id>', 'only sessions of this agent')
    .option('--agent-part <text>', 'only sessions whose agent id contains this text')
    .option('--state <state>', 'idle, working or waiting')
    .option('--q <words>', 'only sessions with these words in the name or the beginning')
    .option('--since <time>', 'only those with activity since then, ISO 8601')
    .option('--until <time>', 'only those without activity since then, ISO 8601')
    .option('--forked-from <session>', 'only forks of this session')
    .option('--limit <n>', 'sessions per page, 1 to 200', '50')
    .option('--cursor <cursor>', 'start after this page')
    .option('--at <position>', 'as of this position of the log')
    .addHelpText(
      'after',
      '\nExamples:\n  antiphon session list --agent support\n  antiphon session list --q tides --since 2026-11-01T00:00:00Z',
    )
    .action(async (options: ListOptions, command: Command) =>
      (await import('./list-sessions.js')).listSessions(context(command), options),
    );
  session
    .command('show <session>')
    .description('show a session and its latest turns')
    .option('--at <position>', 'as of this position of the log')
    .addHelpText('after', '\nExample:\n  antiphon session show 01998f3e-6c1a-7b52-9d0e-5a4c3b2a1f00')
    .action(async (id: string, options: ShowOptions, command: Command) =>
      (await import('./list-sessions.js')).showSession(context(command), id, options),
    );
};

const addFind = (session: Command, context: ContextOf): void => {
  session
    .command('find <session> <text>')
    .description('list the turns whose message or answer has a text, the oldest first')
    .option('--at <position>', 'as of this position of the log')
    .addHelpText(
      'after',
      '\nUpper and lower case are equal. Deleted texts are not found.\n\nExamples:\n  antiphon session find 0d6c… tides\n  antiphon session find 0d6c… "high water" --json | jq .found[0].turnId',
    )
    .action(async (id: string, text: string, options: FindOptions, command: Command) =>
      (await import('./find-texts.js')).findTexts(context(command), id, text, options),
    );
};

/** Adds `antiphon session list|show|find|export|fork|replay|whatif|diff|explain|resume`. */
export const addSession = (program: Command, context: ContextOf): void => {
  const session = program
    .command('session')
    .description('list, show, search, export, fork, replay, compare, explain and resume sessions');
  const adders = [addList, addFind, addExport, addFork, addReplay, addWhatIf, addDiff, addExplain, addResume];
  for (const add of adders) add(session, context);
};
