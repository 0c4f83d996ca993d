import { Controller, Inject } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import {
  cancelTask,
  claimTask,
  createTask,
  finishTask,
  getTask,
  listTasks,
  renewTask,
  type TaskItem,
} from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import { METHODS, TASK_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { isAppError } from '@antiphon/kernel';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { HandleMethod } from '../sockets/handle-method.js';
import type { MethodCall } from '../sockets/rpc-method.js';
import { actorOf } from '../agents/agent-actor.js';
import { AgentAccess } from '../access/agent-access.js';

type Routes = typeof TASK_ROUTES;

/** Returns the fields of a principal that every command carries. */
const commonOf = (principal: Principal) => ({ workspace: principal.workspace, actor: actorOf(principal) });

/** Returns the agents of a task: the agent that has it, and the agent that delegated it. */
const agentsOf = ({ agentId, parentAgentId }: TaskItem) => [agentId, parentAgentId];

/** States of a task that has not ended, in the order in which such tasks are cancelled. */
const OPEN_STATES = ['queued', 'assigned', 'running'] as const;
/** Maximum number of tasks that one request cancels. */
const MAX_CANCELLED = 100;

type Cancelled = z.output<Routes['cancelTasks']['reply']['schema']>;

/**
 * Cancels a page of the open tasks that the principal may read. A cursor is the number of a state,
 * and the cursor of its next page: a task that leaves its state moves no page.
 */
const cancelTasks = async (
  { requests, access }: { readonly requests: GatewayRequests; readonly access: AgentAccess },
  principal: Principal,
  { reason, cursor = '0.', ...filter }: MethodCall<'task.cancelAll'>['params'],
): Promise<Cancelled> => {
  const { workspace } = principal;
  const [index, after] = [Number(cursor[0]), cursor.slice(2)];
  const place = {
    state: OPEN_STATES[index],
    limit: MAX_CANCELLED,
    ...(after === '' ? {} : { cursor: after }),
  };
  const page = await requests.request(listTasks, { workspace, ...place, ...filter });
  const cancelled: string[] = [];
  for (const { id: taskId, kind } of await access.filter(principal, page.tasks, agentsOf)) {
    if (kind !== 'task') continue;
    const command = { ...commonOf(principal), taskId, reason };
    if (await requests.request(cancelTask, command).catch(skipUnknownTask)) cancelled.push(taskId);
  }
  const nextState = index + 1 < OPEN_STATES.length ? `${index + 1}.` : null;
  return { cancelled, nextCursor: page.nextCursor === null ? nextState : `${index}.${page.nextCursor}` };
};

/** Returns null for a task that the caller may read but not cancel. Throws any other error. */
const skipUnknownTask = (error: unknown): null => {
  if (isAppError(error) && error.code === 'TASK.NOT_FOUND') return null;
  throw error;
};

/** Serves tasks, for their clients and for external workers. */
@Controller()
export class TasksController {
  constructor(
    @Inject(REQUESTS) readonly requests: GatewayRequests,
    @Inject(AgentAccess) readonly access: AgentAccess,
  ) {}

  @HandleRoute(TASK_ROUTES.listTasks)
  async list(
    { query }: RouteInput<Routes['listTasks']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof listTasks.reply>> {
    const { workspace } = principal;
    const { counts, retried, ...filter } = query;
    // An agent reads its own tasks alone, so that it learns no number of all.
    const isCounted = counts === 'true' && principal.agentId === null;
    const page = await this.requests.request(listTasks, {
      ...{ workspace, ...filter, counts: isCounted },
      ...(retried === undefined ? {} : { retried: retried === 'true' }),
    });
    return { ...page, tasks: await this.access.filter(principal, page.tasks, agentsOf) };
  }

  @HandleRoute(TASK_ROUTES.createTask)
  async create(
    { body: spec, idempotencyKey }: RouteInput<Routes['createTask']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<TaskItem> {
    const command = { ...commonOf(principal), spec, idempotencyKey };
    return (await this.requests.request(createTask, command)).task;
  }

  @HandleRoute(TASK_ROUTES.claimTask)
  claim(
    { body, idempotencyKey }: RouteInput<Routes['claimTask']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof claimTask.reply>> {
    return this.requests.request(claimTask, { ...commonOf(principal), ...body, idempotencyKey });
  }

  @HandleRoute(TASK_ROUTES.getTask)
  async get(
    { params, query }: RouteInput<Routes['getTask']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<TaskItem & { position?: number | undefined; head?: number | undefined }> {
    const { workspace } = principal;
    const wanted = { workspace, taskId: params.id, ...query };
    const { task, ...asOf } = await this.requests.request(getTask, wanted);
    await this.access.requireAny(principal, agentsOf(task));
    return { ...task, ...asOf };
  }

  @HandleRoute(TASK_ROUTES.cancelTask)
  async cancel(
    { params, body: { reason } }: RouteInput<Routes['cancelTask']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<TaskItem> {
    const command = { ...commonOf(principal), taskId: params.id, reason };
    return (await this.requests.request(cancelTask, command)).task;
  }

  @HandleRoute(TASK_ROUTES.cancelTasks)
  cancelAll(
    { body }: RouteInput<Routes['cancelTasks']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<Cancelled> {
    return cancelTasks(this, principal, body);
  }

  @HandleRoute(TASK_ROUTES.renewTask)
  renew(
    { params, body }: RouteInput<Routes['renewTask']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof renewTask.reply>> {
    return this.requests.request(renewTask, { ...commonOf(principal), taskId: params.id, ...body });
  }

  @HandleRoute(TASK_ROUTES.finishTask)
  async finish(
    { params, body }: RouteInput<Routes['finishTask']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<TaskItem> {
    const command = { ...commonOf(principal), taskId: params.id, ...body };
    return (await this.requests.request(finishTask, command)).task;
  }
}

/** Serves tasks over the WebSocket. */
@WebSocketGateway()
export class TaskMethods {
  constructor(
    @Inject(REQUESTS) readonly requests: GatewayRequests,
    @Inject(AgentAccess) readonly access: AgentAccess,
  ) {}

  @HandleMethod(METHODS['task.create'])
  async create({ params, principal }: MethodCall<'task.create'>): Promise<TaskItem> {
    const { idempotencyKey, ...spec } = params;
    const command = { ...commonOf(principal), spec, idempotencyKey };
    return (await this.requests.request(createTask, command)).task;
  }

  @HandleMethod(METHODS['task.get'])
  async get({ params, workspace, principal }: MethodCall<'task.get'>): Promise<TaskItem> {
    const { task } = await this.requests.request(getTask, { workspace, ...params });
    await this.access.requireAny(principal, agentsOf(task));
    return task;
  }

  @HandleMethod(METHODS['task.cancel'])
  async cancel({ params, principal }: MethodCall<'task.cancel'>): Promise<TaskItem> {
    return (await this.requests.request(cancelTask, { ...commonOf(principal), ...params })).task;
  }

  @HandleMethod(METHODS['task.cancelAll'])
  cancelAll({ params, principal }: MethodCall<'task.cancelAll'>): Promise<Cancelled> {
    return cancelTasks(this, principal, params);
  }
}
