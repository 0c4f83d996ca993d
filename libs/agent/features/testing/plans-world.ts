import { PlanEvent, planStream } from '@antiphon/contracts/agent';
import type { PlanView } from '@antiphon/contracts/agent';
import { decideFiles } from '@antiphon/files-domain';
import type { ModelRequest } from '@antiphon/providers-domain';
import { isoTime } from '@antiphon/kernel';
import { systemClock } from '@antiphon/observability';
import { fileTreeIdOf, planIdOf } from '@antiphon/agent-log/derived-ids';
import { Plans } from '@antiphon/orchestration-features/plans/plans.handler';
import { PLAN_TIMES } from '@antiphon/orchestration-features/orchestration.tokens';
import { PlansRuntime } from '@antiphon/orchestration-features/plans/plans-runtime';
import { WORKSPACE, testConfig, until } from './agent-world.js';
import type { AgentWorld, TestProcess } from './agent-world.js';
import { asksFor, says } from './test-model.js';
import type { Reply } from './test-model.js';
import { override } from './compose-modules.js';

export const PLAN_CONFIG = testConfig({ tools: ['echo', 'make_plan', 'plan_step'], maxIterations: 6 });
export const PLAN_ACTOR = { caller: 'key/ada', role: 'member' as const, agentId: null };
export const PLAN_TREE = fileTreeIdOf(WORKSPACE);

let count = 0;
/** Returns the path of another plan. */
export const nextPath = (): string => `plan-${++count}.plan.md`;

export const lastUser = ({ messages }: ModelRequest): string => {
  const message = messages.findLast(({ role }) => role === 'user');
  return message?.role === 'user' ? message.text : '';
};
/** Returns how many tool results follow the last message of a user. */
export const resultsIn = ({ messages }: ModelRequest): number =>
  messages.slice(messages.findLastIndex(({ role }) => role === 'user')).filter(({ role }) => role === 'tool')
    .length;

/** Does a step of a plan: calls `echo`, reports the step with it as evidence, and answers. */
export const doSteps: Reply = async (request) => {
  const [, step = '', path = ''] = /^Do step (\S+) of the plan (\S+):/.exec(lastUser(request)) ?? [];
  const report = { path, step, status: 'done', evidence: { tool: 'echo' }, note: 'echoed' };
  return (
    [asksFor({ name: 'echo' }), asksFor({ name: 'plan_step', input: report })][resultsIn(request)] ??
    says('ok')
  );
};

export interface PlansProcess extends TestProcess {
  readonly plans: Plans;
  stop(): Promise<void>;
}

/** Creates processes that drive runs of plans, in the world of a spec, and reads what they do. */
export const createPlansWorld = (world: AgentWorld) => {
  const alive = new Set<PlansProcess>();

  /** Starts an agent process that drives runs of plans. */
  const start = (config = PLAN_CONFIG): PlansProcess => {
    const overrides = [override(PLAN_TIMES, { leaseMs: 600, pollMs: 50 })];
    const process = world.process({ config, overrides });
    const runtime = process.get(PlansRuntime);
    const plans = process.get(Plans);
    runtime.start();
    const running: PlansProcess = {
      ...process,
      plans,
      kill: () => {
        alive.delete(running);
        process.kill();
        runtime.halt();
      },
      stop: () => (alive.delete(running), runtime.stop()),
    };
    alive.add(running);
    return running;
  };

  /** Writes a file as a person or an agent does. */
  const write = async (
    { runtime }: PlansProcess,
    path: string,
    text: string,
    actor = 'key/ada',
  ): Promise<void> => {
    const { files } = runtime.services;
    const { digest, size } = await files.putBytes(WORKSPACE, Buffer.from(text));
    await files.commit(WORKSPACE, PLAN_TREE, (tree) => ({
      events: decideFiles(tree, [{ op: 'write', path, digest, size }], {
        ...{ at: isoTime(systemClock), cause: { actor }, limits: PLAN_CONFIG.files },
      }),
    }));
  };
  const readFile = async ({ runtime }: PlansProcess, path: string): Promise<string> => {
    const { files } = runtime.services;
    const digest = (await files.read(WORKSPACE, PLAN_TREE)).files.get(path)?.digest ?? '';
    return Buffer.from(await files.readBytes(WORKSPACE, digest)).toString();
  };
  const show = async ({ plans }: PlansProcess, path: string): Promise<PlanView> =>
    (await plans.get({ workspace: WORKSPACE, path, takesEdits: true })).plan;
  const run = async ({ plans }: PlansProcess, path: string, maxTurns = 20): Promise<PlanView> =>
    (await plans.run({ workspace: WORKSPACE, path, agent: 'main', maxTurns, actor: PLAN_ACTOR })).plan;
  const ended = (process: PlansProcess, path: string): Promise<PlanView> =>
    until(async () => {
      const plan = await show(process, path);
      return plan.run?.ended && plan;
    });
  const factsOf = async (path: string): Promise<PlanEvent[]> =>
    (await world.store.readStream(WORKSPACE, planStream(planIdOf(WORKSPACE, path)))).map((event) =>
      PlanEvent.parse(event),
    );

  /** Stops the processes that were not killed. */
  const stopAll = async (): Promise<void> => {
    await Promise.all([...alive].map((process) => process.stop()));
  };
  return { start, write, readFile, show, run, ended, factsOf, stopAll };
};

/** Returns the ids of the steps with their states. */
export const boxes = ({ steps }: PlanView): string[] =>
  steps.map(({ stepId, status }) => `${stepId} ${status}`);
