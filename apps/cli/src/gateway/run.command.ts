import { randomUUID } from 'node:crypto';
import type { RunEvent, RunSummary, RunView, RunNodeView } from '@antiphon/contracts/agent';
import { invalid, rejected, sleep } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { GatewayAddress } from '../connection/gateway-address.js';
import { type AtOption, getJson, nextPageLine, pathAt, requestJson } from '../connection/http-client.js';
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
interface RunEventPage {
  readonly events: readonly LoggedRunEvent[];
  readonly nextCursor: string | null;
}

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
      return `${event.data.nodeId}: ${event.data.code}, will be retried: ${event.data.message}`;
    case 'TaskCompleted':
      return `${event.data.nodeId}: completed, ${event.data.output.length} characters`;
    case 'TaskFailed':
      return `${event.data.nodeId}: failed, ${event.data.code}: ${event.data.message}`;
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
const watch = async (gateway: GatewayAddress, runId: string, output: Output): Promise<void> => {
  const { encodeCursor } = await import('@antiphon/contracts/log');
  let position = 0;
  for (;;) {
    const query = new URLSearchParams({ stream: `run-${runId}`, cursor: encodeCursor(position) });
    const { events } = await getJson<RunEventPage>(gateway, `/api/v1/events?${query}`);
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
  { output, gateway, cwd }: CommandContext,
  workflow: string,
  { input: inputs, watch: isWatched }: StartOptions,
): Promise<void> => {
  const address = await gateway();
  const isSaved = UUID.test(workflow);
  const run = await requestJson<RunView>(
    address,
    isSaved ? `/api/v1/workflows/${workflow}/start` : '/api/v1/runs',
    {
      method: 'POST',
      body: isSaved ? { inputs } : { workflow: await readDefinition(cwd, workflow), inputs },
      idempotencyKey: randomUUID(),
    },
  );
  if (!isWatched) return output.result(run, run.id);
  await watch(address, run.id, output);
  const ended = await getJson<RunView>(address, `/api/v1/runs/${run.id}`);
  if (!output.json) output.result(ended, renderRun(ended));
  assertCompleted(ended);
};

interface ListOptions {
  readonly status?: string;
  readonly workflow?: string;
  readonly limit: string;
  readonly cursor?: string;
}

interface RunPage {
  readonly runs: readonly RunSummary[];
  readonly nextCursor: string | null;
}

const list = async ({ output, gateway }: CommandContext, options: ListOptions): Promise<void> => {
  const query = new URLSearchParams(Object.entries(options));
  const page = await getJson<RunPage>(await gateway(), `/api/v1/runs?${query}`);
  const lines = page.runs.map(
    ({ id, status, startedAt, name }) => `${id}  ${status.padEnd(10)} ${startedAt}  ${name}`,
  );
  output.result(page, [...lines, ...nextPageLine(page.nextCursor)].join('\n'));
};

const show = async ({ output, gateway }: CommandContext, id: string, at: AtOption): Promise<void> => {
  const path = pathAt(`/api/v1/runs/${encodeURIComponent(id)}`, at);
  const run = await getJson<RunView>(await gateway(), path);
  output.result(run, renderRun(run));
};

interface CancelReply {
  readonly cancelled: boolean;
  readonly status: string;
}

const cancel = async ({ output, gateway }: CommandContext, id: string): Promise<void> => {
  const path = `/api/v1/runs/${encodeURIComponent(id)}/cancel`;
  const reply = await requestJson<CancelReply>(await gateway(), path, { method: 'POST' });
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
