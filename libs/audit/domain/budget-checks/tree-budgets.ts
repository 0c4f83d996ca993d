import type { BudgetEventOf, BudgetLimitEvent, BudgetScope } from '@antiphon/contracts/metering';
import { type CheckRun, type EventPlace, type Finding, type Parsed, violation } from '../audit-check.js';
import type { AgentFact, AgentsCheck } from '../audit-check.js';

type Reserved = BudgetEventOf<'BudgetReserved'>['data'];

interface Amounts {
  readonly tokens: number | null;
  readonly microUsd: number | null;
}
/** A limit in force, and the one before it. */
interface Limit extends Amounts {
  readonly appliesBy: string;
  readonly position: number;
  /** Absent: the limit of the configuration, which no fact records. */
  readonly former?: Amounts | undefined;
  /** True if the limit of the configuration applies again. */
  readonly isRemoved?: boolean;
}
interface Agent {
  readonly parentId: string | null;
  readonly position: number;
}

/** A task with a budget or with a task above it. */
interface Task {
  readonly budget: Amounts | null;
  readonly parentTaskId: string | null;
}

interface SavedTrees {
  readonly limits: readonly (readonly [name: string, limit: Limit])[];
  readonly agents: readonly (readonly [name: string, agent: Agent])[];
  readonly tasks?: readonly (readonly [name: string, task: Task])[];
}

type QueuedTask = Extract<AgentFact, { type: 'TaskQueued' }>['data'];

/** Maximum number of tasks above a task whose budgets apply. */
const MAX_TASKS = 32;
const TASK_KEY = /^[^:]*:task:([0-9a-f-]{36}):/i;
/** Returns the task that a session does. The audit judges by its own rule (ADR 44). */
const taskOf = (sessionKey: string): string | null => TASK_KEY.exec(sessionKey)?.[1]?.toLowerCase() ?? null;

const NONE: Amounts = { tokens: null, microUsd: null };

const nameOf = (at: EventPlace, id: string): string => `${at.workspace} ${id}`;
const isSame = ({ limitTokens, limitMicroUsd }: BudgetScope, limit: Amounts): boolean =>
  limitTokens === limit.tokens && limitMicroUsd === limit.microUsd;
const isLimited = ({ tokens, microUsd }: Amounts): boolean => tokens !== null || microUsd !== null;

class TreeBudgetRun implements CheckRun<Parsed<AgentFact>> {
  private readonly limits: Map<string, Limit>;
  private readonly agents: Map<string, Agent>;
  private readonly tasks: Map<string, Task>;
  private checked = 0;

  constructor(past: SavedTrees | undefined) {
    const saved = structuredClone(past);
    this.limits = new Map(saved?.limits);
    this.agents = new Map(saved?.agents);
    this.tasks = new Map(saved?.tasks);
  }

  see({ place: at, content }: Parsed<AgentFact>): Finding[] {
    if (content.type === 'BudgetLimitSet' || content.type === 'BudgetLimitRemoved')
      return this.setLimit(content, at);
    if (content.type === 'BudgetReserved')
      return [...this.checkScopes(content.data, at), ...this.checkTasks(content.data, at)];
    if (content.type === 'TaskQueued') return this.addTask(content.data, at);
    if (content.type !== 'AgentSpawned') return [];
    const { agentId, parentId } = content.data;
    this.agents.set(nameOf(at, agentId), { parentId, position: at.position });
    return [];
  }

  end(): Finding[] {
    return [];
  }

  count(): number {
    return this.checked;
  }

  save(): SavedTrees {
    return { limits: [...this.limits], agents: [...this.agents], tasks: [...this.tasks] };
  }

  private setLimit({ type, data }: BudgetLimitEvent, at: EventPlace): Finding[] {
    const { scopeKey, appliesBy } = data;
    const name = nameOf(at, scopeKey);
    const before = this.limits.get(name);
    const configured = scopeKey.startsWith('agent/') ? NONE : undefined;
    const former =
      before && !before.isRemoved ? { tokens: before.tokens, microUsd: before.microUsd } : configured;
    const isRemoved = type === 'BudgetLimitRemoved';
    const own = isRemoved ? NONE : { tokens: data.limitTokens, microUsd: data.limitMicroUsd };
    this.limits.set(name, { ...own, appliesBy, position: at.position, former, isRemoved });
    return [];
  }

  /** Returns the ids of the agent and its ancestors, as far as their facts are in the log. */
  private chainOf(agentId: string, at: EventPlace): string[] {
    const chain = [agentId];
    for (let id: string | null | undefined = agentId; id;) {
      id = this.agents.get(nameOf(at, id))?.parentId;
      if (id && !chain.includes(id)) chain.push(id);
      else break;
    }
    return chain;
  }

  private checkScopes(reserved: Reserved, at: EventPlace): Finding[] {
    const ids = this.chainOf(reserved.agentId, at);
    const { agents = [reserved.agentId] } = reserved;
    const chain = ids.map((id) => ({ id, key: `agent/${id}` }));
    const isOwnTree = agents.join(' ') === ids.join(' ');
    const tree = isOwnTree
      ? []
      : [violation(at, `a call of ${ids.join(' of ')} names the agents ${agents.join(' of ')}`)];
    const scopes = reserved.scopes.filter(({ kind }) => kind === 'agent');
    const foreign = scopes
      .filter(({ key }) => !chain.some((one) => one.key === key))
      .map(({ key }) => violation(at, `a call of ${reserved.agentId} was admitted by the limit of ${key}`));
    const own = chain.flatMap(({ key }) => this.checkScope(key, scopes, reserved, at));
    return [...tree, ...foreign, ...own, ...this.checkWorkspaceScopes(reserved, at)];
  }

  /** Checks the scopes of the session, the day and the month by limits that were set at run time. */
  private checkWorkspaceScopes({ scopes, agentId, reservedAt }: Reserved, at: EventPlace): Finding[] {
    return scopes.flatMap((scope) => {
      if (scope.kind === 'agent' || scope.kind === 'task') return [];
      const limit = this.limits.get(nameOf(at, scope.kind));
      if (!limit || limit.isRemoved) return [];
      this.checked++;
      const { former } = limit;
      const isSpreading = reservedAt < limit.appliesBy && (!former || isSame(scope, former));
      if (isSame(scope, limit) || isSpreading) return [];
      const given = `${scope.limitTokens} tokens, ${scope.limitMicroUsd} micro-USD`;
      const due = `${limit.tokens} tokens, ${limit.microUsd} micro-USD`;
      return [
        violation(at, `a call of ${agentId} was admitted with ${given} of ${scope.key}; in force was ${due}`),
      ];
    });
  }

  private addTask({ taskId, budget, parentTaskId }: QueuedTask, at: EventPlace): Finding[] {
    if (budget || parentTaskId !== null) this.tasks.set(nameOf(at, taskId), { budget, parentTaskId });
    return [];
  }

  /** Returns the tasks with a budget, from one up to the first task. */
  private budgetsAbove(taskId: string | null, at: EventPlace): string[] {
    const seen: string[] = [];
    for (let id = taskId; id !== null && !seen.includes(id) && seen.length < MAX_TASKS;) {
      seen.push(id);
      id = this.tasks.get(nameOf(at, id))?.parentTaskId ?? null;
    }
    return seen.filter((id) => this.tasks.get(nameOf(at, id))?.budget);
  }

  /** Checks the budgets of the tasks that a call names, and that a task's own call names them. */
  private checkTasks({ agentId, scopes, sessionKey }: Reserved, at: EventPlace): Finding[] {
    const named = scopes.filter(({ kind }) => kind === 'task');
    const due = this.budgetsAbove(taskOf(sessionKey), at);
    const missing = due
      .filter((id) => !named.some(({ key }) => key === `task/${id}`))
      .map((id) => violation(at, `a call of ${agentId} was admitted without the budget of task/${id}`));
    const wrong = named.flatMap((scope) => {
      const budget = this.tasks.get(nameOf(at, scope.key.slice('task/'.length)))?.budget;
      this.checked++;
      if (budget && isSame(scope, budget)) return [];
      const given = `${scope.limitTokens} tokens, ${scope.limitMicroUsd} micro-USD`;
      return [
        violation(at, `a call of ${agentId} was admitted with ${given} of ${scope.key}, not its budget`),
      ];
    });
    return [...missing, ...wrong];
  }

  private checkScope(
    key: string,
    scopes: readonly BudgetScope[],
    { agentId, reservedAt }: Reserved,
    at: EventPlace,
  ): Finding[] {
    const limit = this.limits.get(nameOf(at, key));
    if (!limit) return [];
    this.checked++;
    const scope = scopes.find((one) => one.key === key);
    const told = scope ?? { kind: 'agent' as const, key, limitTokens: null, limitMicroUsd: null };
    if (isSame(told, limit)) return [];
    // A new agent was never seen without its limit; a change needs a moment to reach every process.
    const isNew = (this.agents.get(nameOf(at, agentId))?.position ?? 0) > limit.position;
    const isSpreading = reservedAt < limit.appliesBy;
    if (!isNew && isSpreading && limit.former && isSame(told, limit.former)) return [];
    const given = scope ? `${scope.limitTokens} tokens, ${scope.limitMicroUsd} micro-USD` : 'no limit';
    const due = isLimited(limit) ? `${limit.tokens} tokens, ${limit.microUsd} micro-USD` : 'no limit';
    return [violation(at, `a call of ${agentId} was admitted with ${given} of ${key}; in force was ${due}`)];
  }
}

/**
 * Checks that each call was admitted by the limits in force of its agent and of every ancestor, and
 * by the budgets of its tasks.
 * `admissions-stay-within-limits` checks the amounts against these limits.
 */
export const treeBudgetsAreNested: AgentsCheck = {
  name: 'tree-budgets-are-nested',
  about:
    'every model call is admitted by the limits in force: of its agent and of each ancestor that has one, by no other agent’s, by the budget of its task, and by those set for each session, day and month',
  counts: 'limits of admissions',
  start: (past) => new TreeBudgetRun(past as SavedTrees | undefined),
};
