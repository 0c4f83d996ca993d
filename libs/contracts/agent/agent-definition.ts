import { z } from 'zod';
import { AgentId } from './agent-id.js';

/** States of an agent's life. `idle` and `working` differ by its open turns. */
export const AGENT_STATES = ['spawning', 'idle', 'working', 'paused', 'error', 'terminated'] as const;
export const AgentState = z.enum(AGENT_STATES);
export type AgentState = z.infer<typeof AgentState>;

/** Phases of a turn, while the agent works. */
/** Phases of a turn, from its events. */
export const TURN_PHASES = ['listening', 'thinking', 'speaking', 'error'] as const;
export type TurnPhase = (typeof TURN_PHASES)[number];
/** Phases of an agent. It is `waiting` while a tool call of an open turn waits for an approval. */
export const AGENT_PHASES = [...TURN_PHASES, 'waiting'] as const;
export const AgentPhase = z.enum(AGENT_PHASES);
export type AgentPhase = z.infer<typeof AgentPhase>;

/** Limits of a tree of agents. */
export const TreeLimits = z.object({
  depth: z.int().min(0).max(16).describe('Maximum number of ancestors of an agent.'),
  children: z.int().min(0).max(1_000).describe('Maximum number of living children of one agent.'),
  size: z.int().min(1).max(10_000).describe('Maximum number of living agents of the tree.'),
});
export type TreeLimits = z.infer<typeof TreeLimits>;

/** Limits of a tree whose root names none. */
export const DEFAULT_TREE_LIMITS: TreeLimits = { depth: 3, children: 8, size: 32 };

/** Money and tokens that an agent and its descendants may spend together. */
export const AgentBudget = z.strictObject({
  tokens: z.int().positive().nullable().default(null),
  microUsd: z.int().positive().nullable().default(null).describe('Integer micro-USD.'),
});
export type AgentBudget = z.infer<typeof AgentBudget>;

const wait = (what: string, max = 21_600) =>
  z.int().min(1).max(max).optional().describe(`Seconds that a model call waits for ${what}.`);

/** Limits of the model calls of an agent, as the configuration names them (`first_byte_s`). */
export const AgentCallLimits = z.strictObject({
  connectS: wait('a connection', 60),
  firstByteS: wait('the first byte of its answer'),
  betweenBytesS: wait('the next byte of its answer'),
  attemptS: wait('its whole answer'),
  tries: z.int().min(1).max(10).optional().describe('Tries of a model call at a provider.'),
  retryTimeouts: z.boolean().optional().describe('Whether a call is tried again after one of these waits.'),
  maxOutputTokens: z.int().min(1).max(1_000_000).optional(),
  concurrentCalls: z.int().min(1).max(10_000).optional().describe('Model calls at the same time.'),
});
export type AgentCallLimits = z.infer<typeof AgentCallLimits>;

/** Maximum size of one identity file, UTF-16 units. */
export const MAX_IDENTITY_LENGTH = 64 * 1024;
const IdentityFile = z.string().max(MAX_IDENTITY_LENGTH);

const Name = z.string().min(1).max(200);
const Names = z.array(z.string().regex(/^[A-Za-z0-9_-]{1,64}$/)).max(64);
/** Names of tools. One that ends in `*` stands for all tools that begin so. */
const ToolNames = z.array(z.string().regex(/^(?:[A-Za-z0-9_-]{1,64}|[A-Za-z0-9_-]{0,63}\*)$/)).max(64);
const choice = { provider: z.string().min(1).max(200), model: z.string().min(1).max(200) };

/** Thinking that an agent asks its model for: an effort, or a budget in tokens. */
const Thinking = z.union([z.int().min(1_024).max(128_000), z.enum(['low', 'medium', 'high'])]);

/** All that decides how an agent behaves, as its facts record it. */
export const AgentDefinition = z.object({
  name: Name,
  role: Name.nullable(),
  ...choice,
  systemPrompt: z.string().max(MAX_IDENTITY_LENGTH).nullable(),
  capabilities: Names,
  /** Tools that it may call. */
  tools: ToolNames,
  project: Name.nullable(),
  position: Name.nullable(),
  maxIterations: z.int().min(1).max(100),
  fallback: z.object(choice).nullable(),
  /** Texts of SOUL.md, AGENT.md, IDENTITY.md and USER.md. Null: the files of `base`. */
  identity: z
    .object({
      soul: IdentityFile.nullable(),
      agent: IdentityFile.nullable(),
      identity: IdentityFile.nullable(),
      user: IdentityFile.nullable(),
    })
    .nullable(),
  /**
   * Configured agent whose approval rules, tool limits and identity files apply. Its own id for a
   * configured agent.
   */
  base: AgentId,
  budget: AgentBudget.nullable(),
  /** Agents that it is limited to. Absent: those of `base`. */
  contacts: Names.optional(),
  /** Absent: that of `base`. */
  thinking: Thinking.optional(),
  /** Absent: those of `base`, as is each limit that is absent. */
  callLimits: AgentCallLimits.optional(),
});
export type AgentDefinition = z.infer<typeof AgentDefinition>;

/**
 * Fields of a definition that were set at run time. They win over the configuration, or over the
 * definition of the spawn request.
 */
export const AgentOverrides = z.object({
  name: Name.optional(),
  role: Name.optional(),
  provider: choice.provider.optional(),
  model: choice.model.optional(),
  systemPrompt: z.string().max(MAX_IDENTITY_LENGTH).optional(),
  tools: ToolNames.optional(),
  capabilities: Names.optional(),
  thinking: Thinking.optional(),
});
export type AgentOverrides = z.infer<typeof AgentOverrides>;
export const OVERRIDABLE = Object.keys(AgentOverrides.shape) as (keyof AgentOverrides)[];

const resettable = <T extends z.ZodType>(field: T) => field.nullable().optional();

/** Changes of an agent as a client sends them. Null resets a field, and an absent one stays. */
export const AgentChanges = z.strictObject({
  name: resettable(Name),
  role: resettable(Name),
  provider: resettable(choice.provider).describe('A provider of the configuration, or a connected one.'),
  model: resettable(choice.model),
  systemPrompt: resettable(z.string().max(MAX_IDENTITY_LENGTH)),
  tools: resettable(ToolNames).describe('Tools that it may call.'),
  capabilities: resettable(Names),
  thinking: resettable(Thinking),
});
export type AgentChanges = z.infer<typeof AgentChanges>;

/** Result of an agent or a task at its end. */
export const AgentResult = z.object({
  status: z.enum(['completed', 'partial', 'failed', 'cancelled']),
  /** Last answer, cut at 65,536 UTF-16 units. */
  text: z.string().max(65_536),
  sessionId: z.uuid().nullable(),
  turnId: z.uuid().nullable(),
  /** Error code of a failure. */
  code: z.string().nullable(),
});
export type AgentResult = z.infer<typeof AgentResult>;

/** A definition as a client or an agent sends it. Fields that are absent come from `base`. */
export const AgentSpec = z.strictObject({
  id: AgentId.optional().describe('Default: a new id from the name.'),
  base: AgentId.optional().describe('Configured agent to start from. Default: the default agent.'),
  name: Name,
  role: Name.optional(),
  provider: z.string().min(1).max(200).optional(),
  model: z.string().min(1).max(200).optional(),
  systemPrompt: z.string().max(MAX_IDENTITY_LENGTH).optional(),
  capabilities: Names.optional(),
  tools: ToolNames.optional().describe(
    'Tools that it may call. A role below operator, and an agent, may name only tools of `base`.',
  ),
  contacts: Names.optional().describe(
    'Agents, `#topics` or `*` that it is limited to, of those that `base` may ask, message and delegate to.',
  ),
  project: Name.optional(),
  position: Name.optional(),
  maxIterations: z.int().min(1).max(100).optional(),
  thinking: Thinking.optional().describe('How much its model thinks: an effort, or a budget in tokens.'),
  callLimits: AgentCallLimits.optional().describe(
    'Limits of its model calls. A role below operator, and an agent, may not exceed those of `base`.',
  ),
  identity: z
    .strictObject({
      soul: IdentityFile.optional(),
      agent: IdentityFile.optional(),
      identity: IdentityFile.optional(),
      user: IdentityFile.optional(),
    })
    .optional()
    .describe('Texts of SOUL.md, AGENT.md, IDENTITY.md and USER.md.'),
  budget: AgentBudget.optional().describe('Limit of what the agent and its descendants spend together.'),
  parent: AgentId.optional().describe(
    'Living agent whose child it becomes. Default: the root of a new tree.',
  ),
  limits: TreeLimits.partial().optional().describe('Limits of the new tree. Refused with `parent`.'),
  whenFull: z
    .enum(['refuse', 'queue'])
    .default('refuse')
    .describe('What happens at a limit of the tree: an error that names it, or a place in the queue.'),
});
export type AgentSpec = z.infer<typeof AgentSpec>;
