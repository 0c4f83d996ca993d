import { Global, Module } from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import { AGENT_STORE, AgentDirectory, LEASE_OWNER } from '@antiphon/agents-features';
import { TASK_BUDGETS, TURN_COMMANDS, TurnEndWatcher } from '@antiphon/conversation-features';
import { WorkTrials, createWorkStarts } from '@antiphon/database';
import { FileTrees } from '@antiphon/files-features';
import { LeaderLoop } from '@antiphon/messaging';
import * as platform from '@antiphon/service-host';
import { createToken, provide, provideClass } from '@antiphon/service-host';
import { LogQuotaInterceptor } from './maintenance/log-quota.interceptor.js';
import { LogUsage } from './maintenance/log-usage.js';
import * as tokens from './orchestration.tokens.js';
import { PlanRunDriver } from './plans/plan-run-driver.js';
import { PLANS_LEASE, PlanRuns, defaultPlanTimes } from './plans/plan-runs.js';
import { PlanStore } from './plans/plan-store.js';
import { ListPlans } from './plans/list-plans.handler.js';
import { Plans } from './plans/plans.handler.js';
import { PlansRuntime } from './plans/plans-runtime.js';
import { CancelRun } from './runs/cancel-run.handler.js';
import { RunQueries } from './runs/run-queries.handler.js';
import {
  RUN_STREAMS,
  WORKFLOW_STREAMS,
  createRunStreams,
  createWorkflowStreams,
} from './runs/run-streams.js';
import { TaskRunner } from './runs/run-task.js';
import { StartRun } from './runs/start-run.handler.js';
import { Workflows } from './runs/workflows.handler.js';
import { DELEGATION_LEASE, Delegation, defaultDelegationTimes } from './tasks/delegation.js';
import { ExternalClaims } from './tasks/external-claims.handler.js';
import { OpenTasks } from './tasks/open-tasks.js';
import { RunningTasks } from './tasks/running-tasks.js';
import { KnownAgents } from './tasks/task-agents.js';
import { WaitReasons } from './tasks/wait-reasons.js';
import { TaskAssigner } from './tasks/task-assigner.js';
import { createTaskBudgets, createTaskOf } from './tasks/task-budgets.js';
import { TaskChanges } from './tasks/task-changes.js';
import { AgentTaskRunner } from './tasks/task-runner.js';
import { TaskStreams } from './tasks/task-streams.js';
import { TaskUpkeep } from './tasks/task-upkeep.js';
import { TasksRuntime, turnsInAnyProcess } from './tasks/tasks-runtime.js';
import { Tasks } from './tasks/tasks.handler.js';

import { temporalProviders } from './temporal-providers.js';
const { CLOCK, CONFIG, DATABASE_POOL, EVENT_STORE, IDS } = platform;
const { LEASE_STORE, LOGGER, NATS, REQUESTS } = platform;
const { TASK_OF, TURNS_ANYWHERE } = tokens;

const MAX_OPEN_TASKS = 10_000;

const DELEGATION_LOOP = createToken<LeaderLoop>('DELEGATION_LOOP');
const PLANS_LOOP = createToken<LeaderLoop>('PLANS_LOOP');
const TASK_TRIALS = createToken<WorkTrials>('TASK_TRIALS');

const runs = [
  provide(WORKFLOW_STREAMS, [EVENT_STORE, IDS], createWorkflowStreams),
  provide(RUN_STREAMS, [EVENT_STORE, IDS], createRunStreams),
  provide(
    TaskRunner,
    [RUN_STREAMS, EVENT_STORE, CLOCK, IDS, TURN_COMMANDS, TurnEndWatcher, DATABASE_POOL],
    (streams, store, clock, ids, turns, turnEnds, pool) => {
      const starts = createWorkStarts(pool);
      return new TaskRunner({ runs: streams, store, clock, ids, turns, turnEnds, starts });
    },
  ),
];

const tasks = [
  provide(TASK_OF, [EVENT_STORE], createTaskOf),
  provide(TASK_BUDGETS, [EVENT_STORE, TASK_OF], createTaskBudgets),
  provide(tokens.MAX_OPEN_TASKS, [], () => MAX_OPEN_TASKS),
  provide(tokens.DELEGATION_TIMES, [], () => defaultDelegationTimes),
  provide(TURNS_ANYWHERE, [REQUESTS, TURN_COMMANDS], turnsInAnyProcess),
  provide(TaskChanges, [NATS], (nats) => new TaskChanges(nats)),
  provide(
    TaskStreams,
    [AGENT_STORE, IDS, CLOCK, TaskChanges],
    (store, ids, clock, changes) => new TaskStreams({ store, ids, clock }, () => changes.announce()),
  ),
  provideClass(OpenTasks, { pool: DATABASE_POOL, store: AGENT_STORE, clock: CLOCK }),
  provideClass(KnownAgents, { config: CONFIG, pool: DATABASE_POOL, directory: AgentDirectory }),
  provideClass(WaitReasons, { pool: DATABASE_POOL, open: OpenTasks, agents: KnownAgents, clock: CLOCK }),
  provideClass(AgentTaskRunner, {
    store: AGENT_STORE,
    tasks: TaskStreams,
    open: OpenTasks,
    turns: TURNS_ANYWHERE,
    turnEnds: TurnEndWatcher,
    agents: KnownAgents,
  }),
  provideClass(TaskUpkeep, {
    pool: DATABASE_POOL,
    leases: LEASE_STORE,
    clock: CLOCK,
    logger: LOGGER,
    owner: LEASE_OWNER,
    tasks: TaskStreams,
    open: OpenTasks,
    agents: KnownAgents,
  }),
  provideClass(TaskAssigner, {
    pool: DATABASE_POOL,
    agents: KnownAgents,
    open: OpenTasks,
    tasks: TaskStreams,
    times: tokens.DELEGATION_TIMES,
  }),
  // The first start of a task is not counted: the process that assigned it begins it.
  provide(
    TASK_TRIALS,
    [DATABASE_POOL],
    (pool) => new WorkTrials(createWorkStarts(pool), { countsFirst: false }),
  ),
  provideClass(RunningTasks, {
    open: OpenTasks,
    runner: AgentTaskRunner,
    assigner: TaskAssigner,
    trials: TASK_TRIALS,
    changes: TaskChanges,
    logger: LOGGER,
    times: tokens.DELEGATION_TIMES,
  }),
  provide(
    DELEGATION_LOOP,
    [LEASE_STORE, LEASE_OWNER, LOGGER, tokens.DELEGATION_TIMES, TaskChanges],
    (leases, owner, logger, times, { signal: wakeSignal }) =>
      new LeaderLoop({
        ...{ leases, owner, logger, ...times, wakeSignal, name: DELEGATION_LEASE },
        warnings: { round: 'task delegation failed', release: 'delegation lease not released' },
      }),
  ),
  provideClass(Delegation, {
    loop: DELEGATION_LOOP,
    open: OpenTasks,
    upkeep: TaskUpkeep,
    assigner: TaskAssigner,
    running: RunningTasks,
    clock: CLOCK,
    times: tokens.DELEGATION_TIMES,
  }),
  provideClass(TasksRuntime, {
    delegation: Delegation,
    changes: TaskChanges,
    pool: DATABASE_POOL,
    nats: NATS,
    logger: LOGGER,
  }),
];

const plans = [
  provide(tokens.PLAN_TIMES, [], () => defaultPlanTimes),
  provide(
    PlanStore,
    [AGENT_STORE, FileTrees, CONFIG, CLOCK, IDS],
    (store, trees, { files }, clock, ids) =>
      new PlanStore({ store, trees, fileLimits: () => files, clock, ids }),
  ),
  provideClass(PlanRunDriver, {
    plans: PlanStore,
    agents: AgentDirectory,
    turns: TURN_COMMANDS,
    turnEnds: TurnEndWatcher,
    store: AGENT_STORE,
    logger: LOGGER,
    times: tokens.PLAN_TIMES,
  }),
  provide(
    PLANS_LOOP,
    [LEASE_STORE, LEASE_OWNER, LOGGER, tokens.PLAN_TIMES],
    (leases, owner, logger, times) =>
      new LeaderLoop({
        ...{ leases, owner, logger, ...times, name: PLANS_LEASE },
        warnings: { round: 'plan runs not driven', release: 'plan lease not released' },
      }),
  ),
  provideClass(PlanRuns, {
    loop: PLANS_LOOP,
    driver: PlanRunDriver,
    pool: DATABASE_POOL,
    logger: LOGGER,
  }),
  provide(PlansRuntime, [PlanRuns], (planRuns) => new PlansRuntime(planRuns)),
];

const handlers = [Workflows, StartRun, CancelRun, RunQueries, Tasks, ExternalClaims, Plans, ListPlans];
const providers = [
  ...handlers,
  ...temporalProviders,
  ...runs,
  ...tasks,
  ...plans,
  provideClass(LogUsage, { pool: DATABASE_POOL, config: CONFIG, logger: LOGGER }),
];

/** Work of agents that outlasts a turn: runs of workflows, tasks and plans, and the maintenance. */
@Global()
@Module({
  controllers: handlers,
  providers: [...providers, { provide: APP_INTERCEPTOR, useClass: LogQuotaInterceptor }],
  exports: providers,
})
export class OrchestrationModule {}
