import { z } from 'zod';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { callLimitKeys } from './call-limit-keys.js';
import { roots } from './file-settings.js';
import { Policy } from './policy.schema.js';
import { TomlFloat } from './toml-value.js';
import {
  NAME,
  TOOL,
  bool,
  hint,
  int,
  name,
  names,
  show,
  shownText,
  text,
  usd,
  workspace,
} from './key-hints.js';

/** Agent that an agent may turn to, a topic, or `*` for all. */
const CONTACT = /^(\*|[#]?[A-Za-z0-9][\w.-]{0,199})$/;
const MODEL_NAME = /^(\*|[^\s/]{1,100}\/\S{1,200})$/;

const Fallback = hint(
  z.strictObject({
    provider: name('provider = "openai"'),
    model: shownText("a model's name", 'model = "gpt-4o"', 200),
  }),
  'a table with provider and model',
  '[agents.fallback]',
);

const AgentBudget = hint(
  z.strictObject({
    tokens: int(
      1,
      Number.MAX_SAFE_INTEGER,
      'tokens that the agent and its descendants may spend',
      'tokens = 100000',
    )
      .nullable()
      .default(null),
    usd: show(
      hint(
        usd('', '').refine((micro) => micro > 0),
        'limit of the agent and its descendants: US dollars, more than 0, at most six decimals',
        'usd = 0.50',
      ),
      'micro-usd',
    )
      .nullable()
      .default(null),
  }),
  'a table with tokens and usd',
  '[agents.budget]',
);

const APPROVAL_MODES = ['always', 'unsafe', 'never'] as const;
/** Roles in ascending order of rights. */
const APPROVER_ROLES = ['member', 'operator', 'admin'] as const;

const guarded = () =>
  show(
    hint(
      z.string().regex(TOOL),
      'a tool of this agent, or * for all of them (get_* for some)',
      'tool = "http-get"',
    ),
  );
const role = (what: string, example: string) =>
  hint(z.enum(APPROVER_ROLES), `${what}: one of ${APPROVER_ROLES.join(', ')}`, example);
const Approval = hint(
  z.strictObject({
    tool: guarded(),
    ask: hint(
      z.enum(APPROVAL_MODES),
      'one of always, unsafe (asks unless the tool declares itself idempotent), never',
      'ask = "always"',
    ).default('always'),
    expires_after_s: int(
      1,
      2_592_000,
      'seconds until the approval expires',
      'expires_after_s = 86400',
    ).default(86_400),
    escalate_after_s: int(
      0,
      2_592_000,
      'seconds without an answer until escalate_to is asked too, where 0 means never',
      'escalate_after_s = 3600',
    ).default(3_600),
    escalate_to: role('the role that is asked too', 'escalate_to = "admin"').default('admin'),
    answer_by: role('the least role that may answer', 'answer_by = "operator"').default('operator'),
  }),
  'a table in double brackets, [[agents.approvals]]',
  '[[agents.approvals]]',
);

/** Maximum attempts of a call, and its longest backoff. Plug-ins have them, too. */
export const attempts = int(1, 10, 'maximum attempts of a call', 'max_attempts = 3').nullable().default(null);
export const longestBackoff = int(
  10,
  600_000,
  'maximum milliseconds between two attempts',
  'max_backoff_ms = 30000',
)
  .nullable()
  .default(null);
const ToolLimit = hint(
  z.strictObject({
    tool: guarded(),
    timeout_ms: int(10, 60_000, 'maximum milliseconds for one attempt of a call', 'timeout_ms = 1000')
      .nullable()
      .default(null),
    max_attempts: attempts,
    max_backoff_ms: longestBackoff,
  }),
  'a table in double brackets, [[agents.tool_limits]]',
  '[[agents.tool_limits]]',
);

/** Budget of thinking in tokens, which every vendor accepts. */
const MIN_THINKING = 1_024;
const MAX_THINKING = 128_000;
const EFFORTS = ['low', 'medium', 'high'] as const;
const Thinking = show(
  hint(
    z.union([z.int().min(MIN_THINKING).max(MAX_THINKING), z.enum(EFFORTS)]),
    `how much its model thinks: ${EFFORTS.join(', ')}, or tokens from ${MIN_THINKING} to ${MAX_THINKING}`,
    'thinking = "medium"',
  ),
);

const MAX_TEMPERATURE = 2;
const toTemperature = (value: unknown): number =>
  value instanceof TomlFloat ? Number(value.text.replaceAll('_', '')) : Number(value);
const Temperature = show(
  hint(
    z
      .custom<unknown>((value) => typeof value === 'number' || value instanceof TomlFloat)
      .transform(toTemperature)
      .refine((value) => value >= 0 && value <= MAX_TEMPERATURE),
    `the temperature of its model: a number from 0 to ${MAX_TEMPERATURE}`,
    'temperature = 0.7',
  ),
);

/** Schema of an entry of `[[agents]]`. */
export const Agent = z.strictObject({
  id: name('id = "main"'),
  workspace: workspace().default(DEFAULT_WORKSPACE),
  name: shownText("the agent's name", 'name = "Main"', 200).optional(),
  role: shownText('what the agent is for', 'role = "assistant"', 200).nullable().default(null),
  provider: name('provider = "anthropic"').optional(),
  model: shownText("a model's name", 'model = "claude-sonnet-4-5"', 200).optional(),
  system_prompt: text('instructions', 'system_prompt = "You are brief."').nullable().default(null),
  soul_path: shownText('the path of a Markdown file', 'soul_path = "agents/SOUL.md"', 4_096)
    .nullable()
    .default(null),
  identity_dir: shownText('the path of a folder', 'identity_dir = "agents/main"', 4_096)
    .nullable()
    .default(null),
  tools: names(
    'tool names (1 to 64 letters, digits, dashes, underscores; weather_* for all that begin so)',
    TOOL,
    'tools = ["echo", "calculator"]',
  ).default([]),
  capabilities: names('capability names', NAME, 'capabilities = ["research"]').default([]),
  thinking: Thinking.nullable().default(null),
  temperature: Temperature.nullable().default(null),
  max_iterations: int(1, 100, 'model calls in one turn at most', 'max_iterations = 10').default(10),
  position: shownText('where a front end shows the agent', 'position = "room-1"', 200)
    .nullable()
    .default(null),
  read_roots: roots('folders that the agent may read', 'read_roots = ["docs"]').optional(),
  write_roots: roots('folders that the agent may change', 'write_roots = ["drafts"]').optional(),
  read_chats: bool('whether its tools read the chats of the workspace as files', 'read_chats = true').default(
    false,
  ),
  contacts: names(
    'ids of agents that it may ask, message and delegate to, #topics, or *',
    CONTACT,
    'contacts = ["researcher", "#news"]',
  ).optional(),
  models: names(
    'models that its spawned agents and forks may use, as provider/model, provider/* or *',
    MODEL_NAME,
    'models = ["openai/gpt-4o-mini"]',
  ).optional(),
  fallback: Fallback.nullable().default(null),
  budget: AgentBudget.nullable().default(null),
  approvals: hint(
    z.array(Approval),
    'tables in double brackets, [[agents.approvals]]',
    '[[agents.approvals]]',
  ).default([]),
  policy: Policy,
  tool_limits: hint(
    z.array(ToolLimit),
    'tables in double brackets, [[agents.tool_limits]]',
    '[[agents.tool_limits]]',
  ).default([]),
  ...callLimitKeys,
});
