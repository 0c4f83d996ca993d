import { z } from 'zod';
import { NATIVE_TOOLS, hasTool } from '@antiphon/config';
import type { AgentConfig, NativeToolName } from '@antiphon/config';
import {
  AgentBudget,
  AgentId,
  MAX_IDENTITY_LENGTH,
  MAX_PLAN_STEPS,
  MAX_STEP_TEXT,
  PlanPath,
  PlanStepId,
  Topic,
} from '@antiphon/contracts/agent';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import { FILE_DESCRIPTIONS, FILE_INPUT } from './file-schemas.js';

const Text = z.string().min(1).max(60_000);
const Names = z.array(z.string().min(1).max(64)).max(64);

const ResultId = z
  .string()
  .regex(/^(?:[0-9a-f]{64}|[0-9a-f-]{36})$/)
  .describe('Id of the call, as its shortened result names it, or SHA-256 of the result.');

/** Arguments of each native tool. */
export const NATIVE_INPUT = {
  send_message: z
    .strictObject({
      agent: AgentId.optional().describe('Agent that gets the message.'),
      topic: Topic.optional().describe('Topic whose followers get it.'),
      everyone: z.literal(true).optional().describe('Every agent gets it.'),
      text: Text.max(15_000),
    })
    .refine(
      ({ agent, topic, everyone }) => [agent, topic, everyone].filter(Boolean).length === 1,
      'give exactly one of agent, topic and everyone',
    ),
  ask_agent: z.strictObject({
    agent: AgentId.describe('Agent that answers.'),
    question: Text.describe('Complete question: the agent does not see this conversation.'),
  }),
  hand_over: z.strictObject({
    agent: AgentId.describe('Agent that answers the user instead of you.'),
    note: Text.max(15_000).optional().describe('What that agent has to know besides the message.'),
  }),
  spawn_agent: z.strictObject({
    name: z.string().min(1).max(200),
    role: z.string().min(1).max(200).optional(),
    instructions: z.string().min(1).max(MAX_IDENTITY_LENGTH).optional().describe('System prompt.'),
    capabilities: Names.optional(),
    tools: Names.optional().describe('Tools that it may call, of those that you may call.'),
    budget: AgentBudget.optional(),
    when_full: z.enum(['refuse', 'queue']).default('refuse'),
  }),
  delegate_task: z.strictObject({
    prompt: Text.describe('Complete task: the agent does not see this conversation.'),
    title: z.string().min(1).max(500).optional(),
    agent: AgentId.optional().describe('Agent that does it. Default: any idle one with the capabilities.'),
    capabilities: Names.optional(),
    priority: z.int().min(0).max(9).optional().describe('0 is the most urgent.'),
    budget: AgentBudget.optional().describe('What the task may spend; it fails at its limit.'),
  }),
  make_plan: z.strictObject({
    path: PlanPath,
    title: z.string().min(1).max(200),
    steps: z
      .array(z.string().trim().min(1).max(MAX_STEP_TEXT))
      .min(1)
      .max(MAX_PLAN_STEPS)
      .describe('One line each, in the order of the work. Each can be checked on its own.'),
  }),
  plan_step: z.strictObject({
    path: PlanPath,
    step: PlanStepId.describe('Id of the step, such as s2.'),
    status: z.enum(['done', 'failed']),
    evidence: z
      .union([
        z.strictObject({
          tool: z.string().min(1).max(64).describe('Tool that this turn called with success.'),
        }),
        z.strictObject({ none: z.string().min(1).max(2_000).describe('Why nothing can verify the step.') }),
      ])
      .optional()
      .describe('Required for done.'),
    note: z.string().min(1).max(2_000).optional().describe('What was done, or why it failed.'),
  }),
  find_tools: z.strictObject({
    query: z.string().min(1).max(500).describe('What the tool has to do, in a few words.'),
    limit: z.int().min(1).max(10).default(5).describe('Maximum number of tools.'),
  }),
  read_result: z.strictObject({
    result: ResultId,
    from_byte: z.int().min(0).default(0),
    bytes: z.int().min(1).max(100_000).default(16_000),
    from_line: z.int().min(1).optional().describe('Reads lines instead of bytes.'),
    lines: z.int().min(1).max(5_000).default(200),
  }),
  search_result: z.strictObject({
    result: ResultId,
    text: z.string().min(1).max(1_000).describe('Exact text.'),
    from_byte: z.int().min(0).default(0),
    limit: z.int().min(1).max(200).default(20),
  }),
  ...FILE_INPUT,
} as const satisfies Record<NativeToolName, z.ZodType>;

const DESCRIPTIONS: Readonly<Record<NativeToolName, string>> = {
  send_message: 'Sends a message to an agent, to a topic, or to every agent. Does not wait for an answer.',
  ask_agent: 'Asks another agent a question, waits for its answer and returns it.',
  hand_over: 'Gives the message of the user to another agent. Its answer ends your turn as your answer.',
  spawn_agent: 'Creates an agent below you. Returns its id, for delegate_task, ask_agent and send_message.',
  make_plan: 'Writes a plan of steps to a .plan.md file. Its steps are done one by one, by plan_step.',
  plan_step: 'Reports that a step of a plan is done, with evidence, or that it failed. Ticks its box.',
  delegate_task: 'Gives a task to another agent and returns its id. Its end comes to you as a message.',
  find_tools:
    'Finds tools that are not listed here, by what they do. You can call the found ones from your next step on.',
  read_result: 'Reads a part of the result of an earlier call: bytes, or numbered lines.',
  search_result: 'Finds an exact text in the result of an earlier call, with the bytes around each place.',
  ...FILE_DESCRIPTIONS,
};

/** `moduleDigest` of tools that no plug-in has. */
export const NATIVE_MODULE = 'native';

const toDescription = (name: NativeToolName): ToolDescription => {
  const { $schema: _, ...inputSchema } = z.toJSONSchema(NATIVE_INPUT[name], { io: 'input' });
  return {
    name,
    description: DESCRIPTIONS[name],
    inputSchema: inputSchema as ToolDescription['inputSchema'],
    // Each has the id of its call as idempotency key.
    idempotent: true,
    moduleDigest: NATIVE_MODULE,
    grants: [],
  };
};

/** Descriptions of the native tools for models, by name. They come before tools of plug-ins. */
export const NATIVE_DESCRIPTIONS: ReadonlyMap<string, ToolDescription> = new Map(
  NATIVE_TOOLS.map((name) => [name, toDescription(name)]),
);

/** Native tools that an agent has without a name in its list: they reach only what is its own. */
const IMPLICIT: ReadonlySet<string> = new Set(['find_tools', 'read_result', 'search_result']);

/** Returns true if an agent may call a tool. */
export const mayCall = (agent: Pick<AgentConfig, 'tools'> | null, tool: string): boolean =>
  agent !== null && (IMPLICIT.has(tool) || hasTool(agent.tools, tool));

export const isNativeTool = (name: string): name is NativeToolName => NATIVE_DESCRIPTIONS.has(name);
