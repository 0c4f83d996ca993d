import type { PlanView } from '@antiphon/contracts/agent';
import { rejected, sleep } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { HttpClient, RouteReply } from '@antiphon/client/http';
import { nextPageLine } from '../connection/gateway-http.js';
import type { CommandContext, ContextOf, Output } from '../output.js';
import { parseWhole } from './agent-views.js';

const POLL_MS = 500;

interface RunOptions {
  readonly agent: string;
  readonly maxTurns?: string;
  readonly watch?: boolean;
}

/** Returns a plan as its file shows it, with what its steps and its run say. */
export const renderPlanView = ({ path, status, steps, conflicts, run }: PlanView): string => {
  const lines = steps.map(({ stepId, text, status: own, note }) => {
    const suffix = own === 'done' || own === 'open' ? '' : ` (${own})`;
    const why = own === 'failed' && note !== null ? `: ${note}` : '';
    return `  [${own === 'done' ? 'x' : ' '}] ${stepId}  ${text}${suffix}${why}`;
  });
  const shown = conflicts.map(
    ({ kind, stepId, theirs }) => `  conflict ${kind}${stepId === null ? '' : ` of ${stepId}`}: ${theirs}`,
  );
  const end = run?.ended;
  const ended = end ? `, ${end.reason}${end.message === null ? '' : `: ${end.message}`}` : '';
  const present = steps.find((step) => step.status === 'started');
  const now = present ? `, does ${present.stepId} now` : ', waits to do the next step';
  const runs = run
    ? [`  run by ${run.agentId}, ${run.turns} of ${run.maxTurns} turns${end ? ended : now}`]
    : [];
  return [`${path}: ${status}`, ...lines, ...shown, ...runs].join('\n');
};

/** Prints the plan at each change until its run has ended. Throws unless the plan is done then. */
const watch = async (http: HttpClient, first: PlanView, output: Output): Promise<void> => {
  let plan = first;
  for (let shown = ''; ; plan = await http.getPlan({ query: { path: plan.path } })) {
    const text = renderPlanView(plan);
    if (text !== shown) output.line(plan, text);
    shown = text;
    if (plan.run?.ended !== null) break;
    await sleep(POLL_MS);
  }
  if (plan.status !== 'done')
    throw rejected('PLAN.NOT_DONE', `the run ended: ${plan.run?.ended?.message ?? plan.run?.ended?.reason}`);
};

const runPlan = async ({ output, http }: CommandContext, path: string, options: RunOptions) => {
  const { agent, maxTurns } = options;
  const most = maxTurns === undefined ? {} : { maxTurns: parseWhole('--max-turns', maxTurns) };
  const routes = await http();
  const plan = await routes.runPlan({ body: { path, agent, ...most } });
  if (options.watch === true) return watch(routes, plan, output);
  output.line(plan, renderPlanView(plan));
};

type PlanPage = RouteReply<'listPlans'>;

const renderItem = ({ path, status, done, steps, agentId }: PlanPage['plans'][number]): string =>
  `${path}  ${status}  ${done} of ${steps} steps${agentId === null ? '' : `  run by ${agentId}`}`;

const listPlans = async ({ output, http }: CommandContext, options: { limit: string; cursor?: string }) => {
  const { limit, cursor } = options;
  const query = { limit: parseWhole('--limit', limit), ...(cursor === undefined ? {} : { cursor }) };
  const page = await (await http()).listPlans({ query });
  const lines = page.plans.length === 0 ? ['no plans'] : page.plans.map(renderItem);
  output.result(page, [...lines, ...nextPageLine(page.nextCursor)].join('\n'));
};

/** Adds `antiphon plan list|show|run|stop`. */
export const addPlan = (program: Command, context: ContextOf): void => {
  const plan = program.command('plan').description('show plans, and let an agent do their steps');
  plan
    .command('list')
    .description('list plans with their states')
    .option('--limit <n>', 'number of plans', '50')
    .option('--cursor <cursor>', 'continue after a page')
    .action((options: { limit: string; cursor?: string }, command: Command) =>
      listPlans(context(command), options),
    );
  plan
    .command('show <path>')
    .description('show a plan: its steps, the conflicts of its last edit, and its run')
    .addHelpText('after', '\nExample:\n  antiphon plan show release.plan.md')
    .action(async (path: string, _: unknown, command: Command) => {
      const { output, http } = context(command);
      const view = await (await http()).getPlan({ query: { path } });
      output.line(view, renderPlanView(view));
    });
  plan
    .command('run <path>')
    .description('let an agent do the open steps, one turn each')
    .requiredOption('--agent <id>', 'agent that does them; it needs the tool plan_step')
    .option('--max-turns <n>', 'turns after which the run ends (default: 50)')
    .option('--watch', 'print the plan at each change until the run ends; exit code 1 unless it is done')
    .addHelpText('after', '\nExample:\n  antiphon plan run release.plan.md --agent main --watch')
    .action((path: string, options: RunOptions, command: Command) =>
      runPlan(context(command), path, options),
    );
  plan
    .command('stop <path>')
    .description('stop the run of a plan and cancel its turn')
    .addHelpText('after', '\nExample:\n  antiphon plan stop release.plan.md')
    .action(async (path: string, _: unknown, command: Command) => {
      const { output, http } = context(command);
      const view = await (await http()).stopPlan({ body: { path } });
      output.line(view, renderPlanView(view));
    });
};
