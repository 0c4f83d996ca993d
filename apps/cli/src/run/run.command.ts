import { randomUUID } from 'node:crypto';
import type { RunSummary, RunView, TaskView } from '@antiphon/contracts/agent';
import { invalid, rejected } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../command-context.js';
import { askJson, getJson } from '../connection/http-client.js';
import { readDefinition } from '../workflow/read-definition.js';
import { watchRun } from './watch-run.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const MAX_SHOWN = 2_000;

const collectInput = (pair: string, inputs: Record<string, string>): Record<string, string> => {
  const at = pair.indexOf('=');
  if (at < 1) throw invalid('CLI.USAGE', `--input ${pair}: say NAME=VALUE`);
  return { ...inputs, [pair.slice(0, at)]: pair.slice(at + 1) };
};

const taskLines = ({ id, agent, status, attempt, output, error }: TaskView): string[] => [
  `  ${id.padEnd(20)} ${status.padEnd(10)} ${agent}${attempt > 1 ? `, attempt ${attempt}` : ''}`,
  ...(error === null ? [] : [`    ${error.code}: ${error.message}`]),
  ...(output === null ? [] : [output.slice(0, MAX_SHOWN).replace(/^/gm, '    ')]),
];

const render = (run: RunView): string =>
  [`${run.name}: ${run.status}  (run ${run.id})`, ...run.tasks.flatMap(taskLines)].join('\n');

/** A run that ended otherwise than it was meant to makes the exit code 1. */
const assertCompleted = ({ status, id }: RunView): void => {
  if (status === 'failed') throw rejected('RUN.FAILED', `run ${id} failed`);
  if (status === 'cancelled') throw rejected('RUN.CANCELLED', `run ${id} was cancelled`);
};

interface StartOptions {
  readonly input: Record<string, string>;
  readonly watch?: boolean;
}

const start = async (
  { output, gateway, cwd }: CommandContext,
  what: string,
  { input: inputs, watch }: StartOptions,
): Promise<void> => {
  const address = gateway();
  const saved = UUID.test(what);
  const path = saved ? `/api/v1/workflows/${what}/start` : '/api/v1/runs';
  const body = saved ? { inputs } : { workflow: readDefinition(cwd, what), inputs };
  const asked = { method: 'POST', body, idempotencyKey: randomUUID() } as const;
  const run = (await askJson(address, path, asked)) as RunView;
  if (!watch) return output.result(run, run.id);
  await watchRun(address, run.id, output);
  const ended = (await getJson(address, `/api/v1/runs/${run.id}`)) as RunView;
  if (!output.json) output.result(ended, render(ended));
  assertCompleted(ended);
};

interface ListOptions {
  readonly status?: string;
  readonly workflow?: string;
  readonly limit: string;
  readonly cursor?: string;
}

const list = async ({ output, gateway }: CommandContext, options: ListOptions): Promise<void> => {
  const query = new URLSearchParams(Object.entries(options));
  const page = (await getJson(gateway(), `/api/v1/runs?${query}`)) as {
    runs: RunSummary[];
    nextCursor: string | null;
  };
  const lines = page.runs.map(
    ({ id, status, startedAt, name }) => `${id}  ${status.padEnd(10)} ${startedAt}  ${name}`,
  );
  const more = page.nextCursor === null ? [] : [`more: --cursor ${page.nextCursor}`];
  output.result(page, [...lines, ...more].join('\n'));
};

const show = async ({ output, gateway }: CommandContext, id: string): Promise<void> => {
  const run = (await getJson(gateway(), `/api/v1/runs/${encodeURIComponent(id)}`)) as RunView;
  output.result(run, render(run));
};

const cancel = async ({ output, gateway }: CommandContext, id: string): Promise<void> => {
  const path = `/api/v1/runs/${encodeURIComponent(id)}/cancel`;
  const answer = (await askJson(gateway(), path, { method: 'POST' })) as {
    cancelled: boolean;
    status: string;
  };
  output.result(answer, answer.cancelled ? `${id}: ${answer.status}` : `${id} has ended: ${answer.status}`);
};

/** `antiphon run start|list|show|cancel` */
export const addRun = (program: Command, context: ContextOf): void => {
  const run = program.command('run').description('executions of workflows');
  run
    .command('start <what>')
    .description('start a workflow: a file, or the id of a saved one')
    .option('--input <name=value>', 'an input of the workflow; again for each', collectInput, {})
    .option('--watch', 'show what happens until it has ended; exit code 1 unless it completed')
    .addHelpText('after', '\nExample:\n  antiphon run start plan.yaml --input goal="a parser" --watch')
    .action((what: string, options: StartOptions, command: Command) =>
      start(context(command), what, options),
    );
  run
    .command('list')
    .description('runs, newest first')
    .option('--status <status>', 'running, cancelling, completed, failed or cancelled')
    .option('--workflow <id>', 'only of this saved workflow')
    .option('--limit <n>', 'runs a page, 1 to 200', '50')
    .option('--cursor <cursor>', 'where an earlier page ended')
    .action((options: ListOptions, command: Command) => list(context(command), options));
  run
    .command('show <id>')
    .description('one run: its tasks and what they wrote')
    .action((id: string, _: unknown, command: Command) => show(context(command), id));
  run
    .command('cancel <id>')
    .description('end a run and the turns that it waits for')
    .action((id: string, _: unknown, command: Command) => cancel(context(command), id));
};
