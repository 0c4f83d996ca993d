import type { AgentDirectory, Messages, SpawnAgent } from '@antiphon/agents-features';
import type { NATIVE_INPUT, NativeCall } from '@antiphon/conversation-features';
import type { TaskOf, Tasks } from '@antiphon/orchestration-features';
import type { z } from 'zod';
import { actorOf } from './ask-agent.js';

type Input<N extends keyof typeof NATIVE_INPUT> = z.output<(typeof NATIVE_INPUT)[N]>;

export interface DelegateToolsDeps {
  readonly messages: Pick<Messages, 'send'>;
  readonly spawner: Pick<SpawnAgent, 'handle'>;
  readonly tasks: Pick<Tasks, 'createTask'>;
  readonly agents: Pick<AgentDirectory, 'load'>;
  readonly taskOf: TaskOf;
}

/** Native tools that give work to other agents: messages, new agents and tasks. */
export class DelegateTools {
  constructor(private readonly deps: DelegateToolsDeps) {}

  async sendMessage(call: NativeCall, input: Input<'send_message'>): Promise<string> {
    const { agent, topic, text } = input;
    const to =
      agent === undefined ? (topic === undefined ? { everyone: true as const } : { topic }) : { agent };
    const { messageId } = await this.deps.messages.send({
      workspace: call.workspace,
      message: { type: 'AgentSpoke', to, content: { text }, cause: call.callId },
      actor: actorOf(call),
      idempotencyKey: call.callId,
    });
    return JSON.stringify({ messageId });
  }

  /** The child belongs to the caller's tree, and may call no tool that the caller may not. */
  async spawnAgent(call: NativeCall, input: Input<'spawn_agent'>): Promise<string> {
    const { instructions: systemPrompt, when_full: whenFull, ...given } = input;
    const caller = await this.deps.agents.load(call.workspace, call.agentId);
    const base = caller ? { base: caller.base } : {};
    const spec = { ...given, ...base, ...(systemPrompt === undefined ? {} : { systemPrompt }), whenFull };
    const { agent } = await this.deps.spawner.handle({
      workspace: call.workspace,
      spec: { ...spec, parent: call.agentId },
      actor: actorOf(call),
      idempotencyKey: call.callId,
    });
    const { id: agentId, state, queued } = agent;
    return JSON.stringify({ agentId, state, queued });
  }

  async delegateTask(call: NativeCall, input: Input<'delegate_task'>): Promise<string> {
    const { chain } = call.turn;
    // The task counts towards the budget of the one that its delegator does.
    const parentTask = await this.deps.taskOf(call.workspace, { chain, sessionKey: call.sessionKey });
    const { task } = await this.deps.tasks.createTask({
      workspace: call.workspace,
      spec: {
        ...input,
        ...(parentTask === null ? {} : { parentTask }),
        priority: input.priority ?? 5,
        capabilities: input.capabilities ?? [],
        worker: 'agent',
      },
      actor: actorOf(call),
      idempotencyKey: call.callId,
    });
    return JSON.stringify({ taskId: task.id, state: task.state });
  }
}
