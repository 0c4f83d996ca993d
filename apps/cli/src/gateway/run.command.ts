import { withMessage } from '@antiphon/contracts/causes';
import type { RunEvent, RunView, RunNodeView } from '@antiphon/contracts/agent';
import { invalid, rejected, sleep } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { HttpClient, RouteRequest } from '@antiphon/client/http';
import { type AtOption, nextPageLine } from '../connection/gateway-http.js';
import type { CommandContext, ContextOf, Output } from '../output.js';
import { readDefinition } from './workflow.command.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const MAX_SHOWN = 2_000;
const POLL_MS = 300;

const collectInput = (pair: string, inputs: Record<string, string>): Record<string, string> => {
  const at = pair.indexOf('=');
  if (at < 1) throw invalid('CLI.USAGE', `--input ${pair}: expected NAME=VALUE`);
  return { ...inputs, [pair.slice(0, at)]: pair.slice(at + 1) };
};

const renderTask = ({ id, agent, status, attempt, output, error }: RunNodeView): string[] => [
  `  ${id.padEnd(20)} ${status.padEnd(10)} ${agent}${attempt > 1 ? `, attempt ${attempt}` : ''}`,
  ...(error === null ? [] : [`    ${error.code}: ${error.message}`]),
  ...(output === null ? [] : [output.slice(0, MAX_SHOWN).replace(/^/gm, '    ')]),
];

const renderRun = (run: RunView): string =>
  [`${run.name}: ${run.status}  (run ${run.id})`, ...run.tasks.flatMap(renderTask)].join('\n');

type LoggedRunEvent = RunEvent & { readonly recordedAt: string; readonly position: number };
/** An event from before causes has a message. */
const messageOf = (data: object): string => withMessage({ message: '', ...data }).message;

/** Renders an event as one line; `run show` prints the tasks' output. */
const renderEvent = (event: LoggedRunEvent): string => {
  switch (event.type) {
    case 'RunStarted':
      return `run ${event.data.runId} started: ${event.data.definition.name}`;
    case 'TaskReady':
      return `${event.data.nodeId}: ready`;
    case 'TaskStarted':
      return `${event.data.nodeId}: ${event.data.agentId} works on it (session ${event.data.sessionId})`;
    case 'TaskAttemptFailed':
      return `${event.data.nodeId}: ${event.data.code}, will be retried: ${messageOf(event.data)}`;
    case 'TaskCompleted':
      return `${event.data.nodeId}: completed, ${event.data.output.length} characters`;
    case 'TaskFailed':
      return `${event.data.nodeId}: failed, ${event.data.code}: ${messageOf(event.data)}`;
    case 'TaskCancelled':
      return `${event.data.nodeId}: cancelled`;
    case 'RunCancelRequested':
      return 'cancelling';
    case 'RunCompleted':
      return 'completed';
    case 'RunFailed':
      return `failed: ${event.data.failedNodes.join(', ')}`;
    case 'RunCancelled':
      return 'cancelled';
  }
};

const RUN_ENDS: ReadonlySet<RunEvent['type']> = new Set(['RunCompleted', 'RunFailed', 'RunCancelled']);

/** Prints the run's events, from its first, until the run has ended. */
const watch = async (http: HttpClient, runId: string, output: Output): Promise<void> => {
  const { encodeCursor } = await import('@antiphon/contracts/log');
  let position = 0;
  for (;;) {
    const page = await http.readEvents({ query: { stream: `run-${runId}`, cursor: encodeCursor(position) } });
    const events = page.events as unknown as readonly LoggedRunEvent[];
    for (const event of events) output.line(event, `${event.recordedAt}  ${renderEvent(event)}`);
    if (events.some(({ type }) => RUN_ENDS.has(type))) return;
    position = events.at(-1)?.position ?? position;
    if (events.length === 0) await sleep(POLL_MS);
  }
};

/** Throws unless the run completed: a watched run that failed sets exit code 1. */
const assertCompleted = ({ status, id }: RunView): void => {
  if (status === 'failed') throw rejected('RUN.FAILED', `run ${id} failed`);
  if (status === 'cancelled') throw rejected('RUN.CANCELLED', `run ${id} was cancelled`);
};

interface StartOptions {
  readonly input: Record<string, string>;
  readonly watch?: boolean;
}

const start = async (
  { output, http: open, cwd }: CommandContext,
  workflow: string,
  { input: inputs, watch: isWatched }: StartOptions,
): Promise<void> => {
  const http = await open();
  const run = await (UUID.test(workflow)
    ? http.startWorkflow({ params: { id: workflow }, body: { inputs } })
    : http.startRun({ body: { workflow: await readDefinition(cwd, workflow), inputs } }));
  if (!isWatched) return output.result(run, run.id);
  await watch(http, run.id, output);
  const ended = await http.getRun({ params: { id: run.id } });
  if (!output.json) output.result(ended, renderRun(ended));
  assertCompleted(ended);
};

interface ListOptions {
  readonly status?: string;
  readonly workflow?: string;
  readonly limit: string;
  readonly cursor?: string;
}

const list = async ({ output, http }: CommandContext, options: ListOptions): Promise<void> => {
  const page = await (await http()).listRuns({ query: options as RouteRequest<'listRuns'>['query'] });
  const lines = page.runs.map(
    ({ id, status, startedAt, name }) => `${id}  ${status.padEnd(10)} ${startedAt}  ${name}`,
  );
  output.result(page, [...lines, ...nextPageLine(page.nextCursor)].join('\n'));
};

const show = async ({ output, http }: CommandContext, id: string, at: AtOption): Promise<void> => {
  const run = await (await http()).getRun({ params: { id }, query: at });
  output.result(run, renderRun(run));
};

const cancel = async ({ output, http }: CommandContext, id: string): Promise<void> => {
  const reply = await (await http()).cancelRun({ params: { id } });
  output.result(reply, reply.cancelled ? `${id}: ${reply.status}` : `${id} has ended: ${reply.status}`);
};

/** Adds `antiphon run start|list|show|cancel`. */
export const addRun = (program: Command, context: ContextOf): void => {
  const run = program.command('run').description('start, watch and cancel executions of workflows');
  run
    .command('start <workflow>')
    .description('start a workflow: a file, or the id of a saved one')
    .option('--input <name=value>', 'an input of the workflow; repeatable', collectInput, {})
    .option('--watch', "print the run's events until it ends; exit code 1 unless it completed")
    .addHelpText('after', '\nExample:\n  antiphon run start plan.yaml --input goal="a parser" --watch')
    .action((workflow: string, options: StartOptions, command: Command) =>
      start(context(command), workflow, options),
    );
  run
    .command('list')
    .description('list runs, newest first')
    .option('--status <status>', 'running, cancelling, completed, failed or cancelled')
    .option('--workflow <id>', 'only runs of this saved workflow')
    .option('--limit <n>', 'runs per page, 1 to 200', '50')
    .option('--cursor <cursor>', 'start after this page')
    .action((options: ListOptions, command: Command) => list(context(command), options));
  run
    .command('show <id>')
    .description('show one run: its tasks and their output')
    .option('--at <position>', 'as of this position of the log')
    .action((id: string, at: AtOption, command: Command) => show(context(command), id, at));
  run
    .command('cancel <id>')
    .description('cancel a run and its open turns')
    .action((id: string, _: unknown, command: Command) => cancel(context(command), id));
};
