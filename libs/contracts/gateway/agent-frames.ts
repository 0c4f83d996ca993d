import { z } from 'zod';
import { AgentPhase, AgentState } from '../agent/agent-definition.js';
import { AgentId } from '../agent/agent-id.js';
import { AgentMetrics, AgentStateChange, listAgentMetrics } from '../agent/agent-requests.js';
import { PlanConflict } from '../agent/plan-events.js';
import { MemoryEntry } from '../memory/index.js';
import { AgentUsage } from '../metering/index.js';

/** Capability of a client that gets the states of all agents without a subscription. */
export const AGENT_STATES = 'agent-states';

/** Tokens and cost of an agent's model calls on one UTC day, those of calls in flight apart. */
export const UsageOfDay = AgentUsage.pick({ calls: true, settledTokens: true, settledMicroUsd: true });
export type UsageOfDay = z.infer<typeof UsageOfDay>;

/** Kinds of frames that a subscription to agents may select. */
export const AGENT_FRAME_KINDS = ['state', 'progress', 'blocked', 'plan', 'memory', 'metrics'] as const;
export const AgentSubscribeParams = z.strictObject({
  agent: AgentId.optional().describe('Default: all agents of the workspace.'),
  frames: z
    .array(z.enum(AGENT_FRAME_KINDS))
    .min(1)
    .optional()
    .describe(
      'Kinds of frames to send. Default: all that the caller may read, except `metrics`. `memory` needs the feature `memory_v1`.',
    ),
});
export type AgentSubscribeParams = z.infer<typeof AgentSubscribeParams>;
export const AgentUnsubscribeParams = AgentSubscribeParams.pick({ agent: true });

/** State of an agent when a subscription begins. */
export const AgentStateView = z.object({
  agentId: z.string(),
  state: AgentState,
  phase: AgentPhase.nullable(),
});
export type AgentStateView = z.infer<typeof AgentStateView>;

const stateFrame = { ...AgentStateChange.shape, agentId: z.string() };
const about = {
  agentId: z.string(),
  sessionId: z.uuid().nullable(),
  turnId: z.uuid().nullable(),
  eventId: z.uuid(),
  eventPosition: z.int().positive().describe('Position of the event in the log.'),
  at: z.iso.datetime(),
};

/**
 * Typed frames `{"type":…}`, without an id. A client gets them after `agent.subscribe`. A client
 * that speaks typed frames gets `agent_broadcast_state` without it.
 */
export const AGENT_FRAMES = {
  agent_state_update: z
    .object({ type: z.literal('agent_state_update'), ...stateFrame })
    .describe('The state or the phase of the subscribed agent changed.'),
  agent_broadcast_state: z
    .object({ type: z.literal('agent_broadcast_state'), ...stateFrame })
    .describe('The state or the phase of an agent changed; for subscribers of all agents.'),
  'agent.progress': z
    .object({
      type: z.literal('agent.progress'),
      ...about,
      kind: z.enum(['turn', 'step', 'tool', 'task']),
      status: z
        .string()
        .describe('`queued`, `started`, `completed`, `failed`, `cancelled`; of a task also `assigned`.'),
      step: z.int().positive().nullable().describe('Number of the model call in the turn.'),
      tool: z.string().nullable().describe('Name of the tool when its call starts.'),
      callId: z.string().nullable(),
      taskId: z.string().nullable(),
    })
    .describe('A turn, a model call, a tool call or a task of the agent continued.'),
  'agent.blocked': z
    .object({
      type: z.literal('agent.blocked'),
      ...about,
      code: z.string().describe('`APPROVAL.PENDING`, or the code of the rule that stopped the turn.'),
      message: z.string().nullable(),
      approvalId: z.uuid().nullable().describe('Approval that the turn waits for.'),
      tool: z.string().nullable().describe('Tool that needs the approval.'),
      chain: z.array(z.string()).describe('Agents of a hand-over cycle, in order.'),
    })
    .describe('The agent cannot continue: a tool call waits for an approval, or a rule stopped the turn.'),
  'agent.plan': z
    .object({
      type: z.literal('agent.plan'),
      ...about,
      planId: z.uuid(),
      path: z.string().describe('Path of the plan’s file.'),
      change: z
        .enum([
          'created',
          'step_added',
          'step_removed',
          'step_reworded',
          'reordered',
          'step_started',
          'step_completed',
          'step_failed',
          'step_reopened',
          'conflict',
          'file_written',
          'run_started',
          'run_ended',
        ])
        .describe('`file_written` follows each change of the file, and has its counts.'),
      stepId: z.string().nullable(),
      text: z.string().nullable().describe('Text of an added or reworded step, or message of an end.'),
      steps: z
        .array(z.object({ stepId: z.string(), text: z.string() }))
        .optional()
        .describe('With `created`: the steps of the plan.'),
      done: z.int().nonnegative().optional().describe('With `file_written`: number of ticked boxes.'),
      total: z.int().nonnegative().optional().describe('With `file_written`: number of boxes.'),
      conflicts: z
        .array(PlanConflict)
        .optional()
        .describe('With `conflict`: parts of an edit that stay out.'),
    })
    .describe('A plan that the agent made or works on changed. `created` comes before the first step.'),
  'memory.event': z
    .object({
      type: z.literal('memory.event'),
      ...about,
      change: z
        .enum(['learned', 'superseded'])
        .describe('`superseded` comes right before the `learned` entry that replaces it.'),
      ...MemoryEntry.pick({
        memoryId: true,
        kind: true,
        text: true,
        subject: true,
        predicate: true,
        object: true,
        confidence: true,
      }).shape,
    })
    .describe('Memory learned from a message to the agent. `memory.recall` returns the entry.'),
  'agent.metrics': z
    .object({
      type: z.literal('agent.metrics'),
      agentId: z.string(),
      latest: AgentMetrics,
      today: UsageOfDay,
    })
    .describe('A sample of what the agent used in 30 seconds is stored. Only if it is asked for by name.'),
} as const;
export type AgentFrame = z.infer<(typeof AGENT_FRAMES)[keyof typeof AGENT_FRAMES]>;
export type AgentStateFrame = z.infer<typeof AGENT_FRAMES.agent_broadcast_state>;

/** Reply with the metrics of all agents. */
export const AgentMetricsReply = listAgentMetrics.reply.extend({
  agents: z.array(
    listAgentMetrics.reply.shape.agents.element.extend({
      today: UsageOfDay.nullable().describe('Tokens and cost of the UTC day; null without `budgets:read`.'),
    }),
  ),
});
export type AgentMetricsReply = z.infer<typeof AgentMetricsReply>;
