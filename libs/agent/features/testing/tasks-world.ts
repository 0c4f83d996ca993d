import type { AgentConfig, AntiphonConfig } from '@antiphon/config';
import { TaskEvent, cancelTurn, submitTurn } from '@antiphon/contracts/agent';
import type { TaskItem, TaskSpec } from '@antiphon/contracts/agent';
import { acrossWorkspaces } from '@antiphon/database';
import { isAppError } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import { ExternalClaims } from '@antiphon/orchestration-features/tasks/external-claims.handler';
import { Tasks } from '@antiphon/orchestration-features/tasks/tasks.handler';
import { TasksRuntime } from '@antiphon/orchestration-features/tasks/tasks-runtime';
import { DELEGATION_TIMES, MAX_OPEN_TASKS } from '@antiphon/orchestration-features/orchestration.tokens';
import { defaultDelegationTimes } from '@antiphon/orchestration-features/tasks/delegation';
import type { DelegationTimes } from '@antiphon/orchestration-features/tasks/delegation';
import { WORKSPACE, createAgentWorld, testConfig, until } from './agent-world.js';
import type { AgentWorld, TestProcess, WorldDatabase } from './agent-world.js';
import { override } from './compose-modules.js';

export const ACTOR = { caller: 'key/spec', role: 'member' as const, agentId: null };
export const WORKER = { caller: 'key/worker', role: 'member' as const, agentId: null };

/** An agent process that assigns tasks. */
export interface TasksProcess extends TestProcess {
  readonly tasksRuntime: TasksRuntime;
  readonly tasks: Tasks;
  readonly claims: ExternalClaims;
  /** Stops as SIGTERM does. */
  stop(): Promise<void>;
}

/** Returns a configuration with agents of these names and capabilities. */
export const configWith = (agents: Readonly<Record<string, readonly string[]>>): AntiphonConfig => {
  const [agent] = testConfig().agents;
  return {
    ...testConfig(),
    agents: Object.entries(agents).map(([id, capabilities]): AgentConfig => ({
      ...agent!,
      id,
      capabilities: [...capabilities],
      tools: [],
    })),
  };
};

/**
 * Lets a process do its share of the requests for turns, as all agent processes do. Returns the end
 * of it.
 */
const serveTurns = ({ connection }: NatsLink, { runtime }: TestProcess): (() => void) => {
  const serve = (subject: string, handle: (body: unknown) => Promise<unknown>) =>
    connection.subscribe(subject, {
      queue: 'agent',
      callback: (_error, message) => {
        handle(message.json()).then(
          (result) => message.respond(JSON.stringify({ ok: true, result })),
          (error: unknown) => {
            if (!isAppError(error)) throw error;
            const { kind, code, message: text } = error;
            message.respond(JSON.stringify({ ok: false, error: { kind, code, message: text } }));
          },
        );
      },
    });
  const served = [
    serve(submitTurn.subject, (body) => runtime.submitTurn(submitTurn.request.parse(body))),
    serve(cancelTurn.subject, (body) => runtime.cancelTurn(cancelTurn.request.parse(body))),
  ];
  return () => {
    for (const subscription of served) subscription.unsubscribe();
  };
};

/** An agent world whose processes have tasks. */
export class TasksWorld {
  private readonly alive = new Set<TasksProcess>();

  constructor(readonly agents: AgentWorld) {}

  process(
    config: AntiphonConfig = configWith({ main: [] }),
    options: { readonly times?: Partial<DelegationTimes>; readonly maxOpenTasks?: number } = {},
    { assigns = true }: { readonly assigns?: boolean } = {},
  ): TasksProcess {
    const { nats } = this.agents;
    const { times, maxOpenTasks } = options;
    const process = this.agents.process({
      config,
      overrides: [
        override(DELEGATION_TIMES, { ...defaultDelegationTimes, ...times }),
        ...(maxOpenTasks === undefined ? [] : [override(MAX_OPEN_TASKS, maxOpenTasks)]),
      ],
    });
    const stopServing = serveTurns(nats, process);
    const tasksRuntime = process.get(TasksRuntime);
    if (assigns) tasksRuntime.start();
    const running: TasksProcess = {
      ...process,
      tasksRuntime,
      tasks: process.get(Tasks),
      claims: process.get(ExternalClaims),
      kill: () => {
        this.alive.delete(running);
        stopServing();
        process.kill();
        tasksRuntime.halt();
      },
      stop: async () => {
        this.alive.delete(running);
        await tasksRuntime.stop();
        stopServing();
        await process.runtime.stop();
      },
    };
    this.alive.add(running);
    return running;
  }

  /** Sends a task as a client does. Returns its id. */
  async send(
    { tasks }: TasksProcess,
    spec: Partial<TaskSpec> & { readonly prompt?: string } = {},
    more: { readonly workspace?: string; readonly idempotencyKey?: string; readonly agentId?: string } = {},
  ): Promise<string> {
    const { workspace = WORKSPACE, idempotencyKey, agentId } = more;
    const { task } = await tasks.createTask({
      workspace,
      spec: { prompt: 'do it', priority: 5, capabilities: [], worker: 'agent', ...spec },
      actor: agentId === undefined ? ACTOR : { ...ACTOR, caller: `agent/${agentId}`, agentId },
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    });
    return task.id;
  }

  async get({ tasks }: TasksProcess, taskId: string, workspace = WORKSPACE): Promise<TaskItem> {
    return (await tasks.getTask({ workspace, taskId })).task;
  }

  /** Waits for the end of a task. */
  ended(process: TasksProcess, taskId: string, timeoutMs = 15_000): Promise<TaskItem> {
    return until(async () => {
      const task = await this.get(process, taskId);
      return task.endedAt !== null && task;
    }, timeoutMs);
  }

  /** Reads the events of all tasks from the log, by event stream. */
  async history(): Promise<Map<string, TaskEvent[]>> {
    const { rows } = await acrossWorkspaces(this.agents.pool).query<{ stream_id: string; event: unknown }>(
      `select stream_id, jsonb_build_object('type', type, 'schemaVersion', schema_version, 'data', data) as event
       from events where category = 'task' order by position`,
    );
    const streams = new Map<string, TaskEvent[]>();
    for (const { stream_id, event } of rows)
      streams.set(stream_id, [...(streams.get(stream_id) ?? []), TaskEvent.parse(event)]);
    return streams;
  }

  async close(): Promise<void> {
    await Promise.all([...this.alive].map((process) => process.stop()));
    await this.agents.close();
  }
}

export const createTasksWorld = async (database: WorldDatabase, natsUrl: string): Promise<TasksWorld> =>
  new TasksWorld(await createAgentWorld(database, natsUrl));
