import { withMessage } from '@antiphon/contracts/causes';
import type { TaskEvent, TaskItem } from '@antiphon/contracts/agent';
import { invalid, rejected, sleep } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { HttpClient, RouteRequest } from '@antiphon/client/http';
import { type AtOption, nextPageLine } from '../connection/gateway-http.js';
import type { CommandContext, ContextOf, Output } from '../output.js';
import { renderTask, renderTasks, withProgress } from './agent-views.js';
import { readInput } from './chat.command.js';
import type { CreateOptions } from './task-spec.js';

const POLL_MS = 300;
/** Time without a new event after which a watch says that it waits, ms. */
const SILENCE_MS = 2_000;
const RUN_NODE = /^([^/]+)\/(.+)$/;

type LoggedTaskEvent = TaskEvent & { readonly recordedAt: string; readonly position: number };
const becauseOf = (text: string | null = null): string => (text === null ? '' : `: ${text}`);
const renderEvent = (event: LoggedTaskEvent): string => {
  switch (event.type) {
    case 'TaskQueued':
      return `queued with priority ${event.data.priority}`;
    case 'TaskAssigned':
      return `assigned to ${event.data.worker}, claim ${event.data.epoch}`;
    case 'TaskBegun':
      return `running${event.data.sessionId === null ? '' : ` in session ${event.data.sessionId}`}`;
    case 'TaskRequeued':
      return `queued again, ${event.data.reason}${becauseOf(withMessage({ message: null as string | null, ...event.data }).message)}`;
    case 'TaskResultRefused':
      return `late result of ${event.data.worker} refused, claim ${event.data.epoch}`;
    case 'TaskCancelRequested':
      return `cancelling${becauseOf(withMessage(event.data).reason)}`;
    case 'TaskEnded':
      return event.data.status;
    default:
      // An event of a newer version.
      return (event as { type: string }).type;
  }
};

/** Prints the task's events, from its first, until the task has ended. */
const watchEvents = async (http: HttpClient, taskId: string, output: Output): Promise<void> => {
  const { encodeCursor } = await import('@antiphon/contracts/log');
  let position = 0;
  let quietSince = performance.now();
  for (;;) {
    const page = await http.readEvents({
      query: { stream: `task-${taskId}`, cursor: encodeCursor(position) },
    });
    const events = page.events as unknown as readonly LoggedTaskEvent[];
    for (const event of events) output.line(event, `${event.recordedAt}  ${renderEvent(event)}`);
    if (events.some(({ type }) => type === 'TaskEnded')) return;
    position = events.at(-1)?.position ?? position;
    if (events.length > 0) quietSince = performance.now();
    else if (performance.now() - quietSince > SILENCE_MS) {
      output.note('no change yet; Ctrl-C ends the watch, and the task continues');
      quietSince = Infinity;
    }
    if (events.length === 0) await sleep(POLL_MS);
  }
};

/** Throws unless the task completed: a watched task that failed sets exit code 1. */
const assertCompleted = ({ id, state, result }: TaskItem): void => {
  if (state === 'failed')
    throw rejected(
      result?.code ?? 'TASK.FAILED',
      `task ${id} failed; \`antiphon task show ${id}\` tells why`,
    );
  if (state === 'cancelled') throw rejected('TASK.CANCELLED', `task ${id} was cancelled`);
};

const watch = async (http: HttpClient, id: string, output: Output): Promise<void> => {
  const [, runId] = RUN_NODE.exec(id) ?? [];
  if (runId !== undefined)
    throw invalid(
      'CLI.USAGE',
      `${id} is a node of a run. What to do: see its run with \`antiphon run show ${runId}\``,
    );
  // A wrong id is an error instead of an endless wait.
  await http.getTask({ params: { id } });
  await watchEvents(http, id, output);
  const ended = await http.getTask({ params: { id } });
  if (!output.json) output.result(ended, renderTask(ended));
  assertCompleted(ended);
};

const create = async (
  { output, http }: CommandContext,
  text: string,
  options: CreateOptions,
): Promise<void> => {
  const { taskSpecOf } = await import('./task-spec.js');
  const body = taskSpecOf(text === '-' ? await readInput() : text, options);
  const routes = await http();
  const created = routes.createTask({ body: body as RouteRequest<'createTask'>['body'] });
  const task = await withProgress(output, 'creating the task', created);
  if (options.watch !== true) return output.result(task, task.id);
  await watch(routes, task.id, output);
};

interface ListOptions {
  readonly state?: string;
  readonly agent?: string;
  readonly project?: string;
  readonly limit: string;
  readonly cursor?: string;
}

const list = async ({ output, http }: CommandContext, options: ListOptions): Promise<void> => {
  const page = await (await http()).listTasks({ query: options as RouteRequest<'listTasks'>['query'] });
  const table = page.tasks.length === 0 ? 'no tasks' : renderTasks(page.tasks);
  output.result(page, [table, ...nextPageLine(page.nextCursor)].join('\n'));
};

const show = async ({ output, http }: CommandContext, id: string, at: AtOption): Promise<void> => {
  const task = await (await http()).getTask({ params: { id }, query: at });
  output.result(task, renderTask(task));
};

const cancel = async (
  { output, http }: CommandContext,
  id: string,
  { reason }: { readonly reason?: string },
): Promise<void> => {
  const cancelled = (await http()).cancelTask({ params: { id }, body: { action: 'cancel', reason } });
  const task = await withProgress(output, 'cancelling the task', cancelled);
  output.result(task, `${id}: ${task.endedAt === null ? `${task.state}, cancelling` : task.state}`);
};

interface CancelAllOptions {
  readonly agent?: string;
  readonly project?: string;
  readonly reason?: string;
  readonly all?: boolean;
}

/** Returns the filter of the tasks to cancel. Throws `CLI.USAGE` where the options name none. */
export const tasksToCancel = ({ all, ...filter }: CancelAllOptions): Omit<CancelAllOptions, 'all'> => {
  const hasFilter = filter.agent !== undefined || filter.project !== undefined;
  if (hasFilter === (all === true))
    throw invalid(
      'CLI.USAGE',
      'which tasks? Name --agent or --project, or say --all for the whole workspace',
    );
  return filter;
};

const cancelAll = async ({ output, http }: CommandContext, options: CancelAllOptions): Promise<void> => {
  const filter = tasksToCancel(options);
  const { cancelTasks } = await http();
  const cancelled: string[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await cancelTasks({ body: { ...filter, ...(cursor === undefined ? {} : { cursor }) } });
    cancelled.push(...page.cancelled);
    cursor = page.nextCursor;
    if (cancelled.length > 0 && cursor !== null) output.note(`${cancelled.length} tasks cancelled …`);
  }
  output.result({ cancelled }, [...cancelled, `${cancelled.length} tasks cancelled`].join('\n'));
};

const EXAMPLES = `
Examples:
  antiphon task create "Collect facts about tide tables." --capabilities research --watch
  antiphon task create - --agent researcher-7f3a --priority 2 < prompt.txt
  antiphon task list --state running --project website
  antiphon task cancel 01998f42-1b00-7c3d-8e9f-a0b1c2d3e4f5 --reason "not needed"`;

const addCreate = (task: Command, context: ContextOf): void => {
  task
    .command('create')
    .description('create a task; it waits until an agent with its capabilities is idle')
    .argument('<prompt>', 'the text of the task, or - to read it from standard input')
    .option('--title <text>', 'short title (default: the beginning of the prompt)')
    .option('--agent <id>', 'agent that must do it (default: any with the capabilities)')
    .option('--capabilities <list>', 'what its agent must be able to do, separated by commas')
    .option('--priority <n>', '0 is the most urgent, 9 the least (default: 5)')
    .option('--project <name>', 'its project')
    .option('--parent <id>', 'task that it is part of')
    .option('--retry-of <id>', 'task that has ended, and that it tries again')
    .option('--deadline <when>', 'a duration such as 2h, or an ISO 8601 time; it fails after it')
    .option('--strikes <n>', 'failed attempts after which it fails, 1 to 10 (default: 3)')
    .option('--backoff <ms>', 'delay before the second attempt; it doubles (default: 1000)')
    .option('--budget-tokens <n>', 'tokens that it may spend')
    .option('--budget-usd <usd>', 'US dollars that it may spend, such as 0.50')
    .option('--external', 'a program does it, by POST /api/v1/tasks/claim')
    .option('--watch', "print the task's events until it ends; exit code 1 unless it completed")
    .addHelpText('after', EXAMPLES)
    .action((prompt: string, options: CreateOptions, command: Command) =>
      create(context(command), prompt, options),
    );
};

/** Adds `antiphon task create|list|show|cancel|cancel-all|watch`. */
export const addTask = (program: Command, context: ContextOf): void => {
  const task = program
    .command('task')
    .description('create, list, watch and cancel tasks')
    .addHelpText('after', EXAMPLES);
  addCreate(task, context);
  task
    .command('list')
    .description('list tasks and nodes of runs, newest first')
    .option('--state <state>', 'queued, assigned, running, completed, failed or cancelled')
    .option('--agent <id>', 'only tasks that this agent has or must do')
    .option('--project <name>', 'only tasks of this project')
    .option('--limit <n>', 'tasks per page, 1 to 500', '100')
    .option('--cursor <cursor>', 'start after this page')
    .addHelpText('after', '\nExample:\n  antiphon task list --state queued')
    .action((options: ListOptions, command: Command) => list(context(command), options));
  task
    .command('show <id>')
    .description('show one task: its state, its failed attempts and its result')
    .option('--at <position>', 'as of this position of the log')
    .addHelpText('after', '\nExample:\n  antiphon task show 01998f42-1b00-7c3d-8e9f-a0b1c2d3e4f5')
    .action((id: string, at: AtOption, command: Command) => show(context(command), id, at));
  task
    .command('cancel <id>')
    .description('cancel a task and the turn that works on it')
    .option('--reason <text>', 'why; the log shows it')
    .addHelpText('after', '\nExample:\n  antiphon task cancel 01998f42-1b00-7c3d-8e9f-a0b1c2d3e4f5')
    .action((id: string, options: { reason?: string }, command: Command) =>
      cancel(context(command), id, options),
    );
  task
    .command('cancel-all')
    .description('cancel all tasks that have not ended, of an agent, a project or the workspace')
    .option('--agent <id>', 'only tasks that this agent has or must do')
    .option('--project <name>', 'only tasks of this project')
    .option('--all', 'all tasks of the workspace')
    .option('--reason <text>', 'why; the log shows it')
    .addHelpText('after', '\nExample:\n  antiphon task cancel-all --project website')
    .action((options: CancelAllOptions, command: Command) => cancelAll(context(command), options));
  task
    .command('watch <id>')
    .description("print a task's events until it ends; exit code 1 unless it completed")
    .addHelpText('after', '\nExample:\n  antiphon task watch 01998f42-1b00-7c3d-8e9f-a0b1c2d3e4f5')
    .action(async (id: string, _: unknown, command: Command) => {
      const { output, http } = context(command);
      await watch(await http(), id, output);
    });
};
