import { z } from 'zod';
import { callLimitKeys } from './call-limit-keys.js';
import { CAPABILITY_FORMS } from './capability.js';
import { Channel } from './channel.schema.js';
import { Agent, attempts, longestBackoff } from './agent.schema.js';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { Files, Mcp, Tools } from './file-settings.js';
import { NOTHING, TOOL, bool, hint, int, list, name, names, networks, origins } from './key-hints.js';
import {
  oneWorkspace,
  perSecond,
  seconds,
  section,
  show,
  shownText,
  text,
  tokens,
  usd,
  workspace,
} from './key-hints.js';
import { Parameters } from './model-parameters.js';
import { PROVIDER_KINDS } from './provider-kinds.js';

/** Minimum length of a configured token: a shorter one can be guessed. */
export const MIN_TOKEN_LENGTH = 32;
export const TOKEN_RULE = `the secret that clients send to connect: at least ${MIN_TOKEN_LENGTH} characters (openssl rand -hex 32)`;
export const DEFAULT_PORT = 7400;
/** Days for which a comparison of projections looks at changes of agents' states. */
export const COMPARED_DAYS = 30;

const Limits = z.strictObject({
  requests_per_second: perSecond('requests', 'requests_per_second', 100),
  frames_per_second: perSecond('WebSocket frames', 'frames_per_second', 200),
  bytes_per_second: perSecond('bytes received', 'bytes_per_second', 4 * 1024 * 1024),
  sign_ins: int(
    0,
    1_000_000,
    'sign-ins of one client address, and of one API key, in five minutes, where 0 means no limit',
    'sign_ins = 20',
  ).default(20),
});

const Gateway = z.strictObject({
  host: shownText('an address or host name to listen on', 'host = "127.0.0.1"', 253).default('127.0.0.1'),
  port: int(0, 65_535, 'a port, where 0 means any free one', 'port = 7400').default(DEFAULT_PORT),
  token: hint(
    z.string().min(MIN_TOKEN_LENGTH).max(4_096),
    TOKEN_RULE,
    'token = "the-output-of-openssl-rand-hex-32"',
  )
    .nullable()
    .default(null),
  trusted_proxies: networks('your reverse proxies', 'trusted_proxies = ["10.0.0.0/8"]').default([]),
  allowed_origins: origins('allowed_origins = ["https://app.example.com"]').default([]),
  loopback_without_token: bool(
    'whether local programs need no credential on a loopback host without a token',
    'loopback_without_token = true',
  ).default(true),
  header_timeout_s: seconds('the headers of a request', 'header_timeout_s', 10),
  body_timeout_s: seconds('a whole request', 'body_timeout_s', 30),
  heavy_wait_s: int(1, 60, 'seconds that a heavy request waits for its turn', 'heavy_wait_s = 10').default(
    10,
  ),
  limits: hint(Limits, 'a table, [gateway.limits]', '[gateway.limits]').prefault({}),
});

const Provider = z.strictObject({
  name: name('name = "anthropic"'),
  kind: hint(z.enum(PROVIDER_KINDS), `one of ${PROVIDER_KINDS.join(', ')}`, 'kind = "anthropic"'),
  base_url: text(
    'an http or https URL (of the kind scripted, a file: URL)',
    'base_url = "http://127.0.0.1:8080/v1"',
    2_048,
  )
    .nullable()
    .default(null),
  api_key_env: hint(
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/),
    'the NAME of the environment variable that holds the key, never the key itself',
    'api_key_env = "ANTHROPIC_API_KEY"',
  )
    .nullable()
    .default(null),
  stored_key: bool(
    'whether the key is a stored credential, so that its variable may be unset',
    'stored_key = true',
  ).default(false),
  proxy: text(
    'the URL of an http or https proxy, or none for a direct connection',
    'proxy = "http://proxy.example:3128"',
    2_048,
  ).optional(),
  ca_file: shownText(
    'the path of a PEM file with certificates to trust besides those of the system',
    'ca_file = "certificates/company.pem"',
    4_096,
  ).optional(),
  program: hint(
    z.enum(['claude', 'gemini', 'codex']),
    'the local program of a provider of kind cli: claude, gemini or codex',
    'program = "claude"',
  ).optional(),
  command: shownText(
    'the absolute path of this program; by default it is looked up in PATH',
    'command = "/usr/local/bin/claude"',
    4_096,
  ).optional(),
  pass_env: names(
    'names of environment variables that the program gets',
    /^[A-Za-z_][A-Za-z0-9_]{0,127}$/,
    'pass_env = ["HOME", "ANTHROPIC_API_KEY"]',
  ).optional(),
  folder: shownText(
    'the folder that the program works in; by default a new empty one for each call',
    'folder = "agents/main"',
    4_096,
  ).optional(),
  ...callLimitKeys,
  prompt_cache: bool(
    'whether requests of the kind anthropic ask for the prompt cache of the vendor',
    'prompt_cache = true',
  ).default(true),
});

const PluginRetry = hint(
  z.strictObject({ max_attempts: attempts, max_backoff_ms: longestBackoff }),
  'a table with max_attempts and max_backoff_ms',
  '[plugins.retry]',
).prefault(NOTHING);

const Plugin = z.strictObject({
  name: show(
    hint(z.string().regex(TOOL), '1 to 64 letters, digits, dashes or underscores', 'name = "weather"'),
  ),
  workspace: workspace().default(DEFAULT_WORKSPACE),
  // Needed unless the name is that of a bundled plug-in (check-rules.ts).
  path: shownText('the path of a WebAssembly module', 'path = "plugins/weather.wasm"', 4_096)
    .nullable()
    .default(null),
  kind: hint(z.enum(['tool', 'channel']), 'tool or channel', 'kind = "tool"').default('tool'),
  capabilities: names(
    `typed capabilities, ${CAPABILITY_FORMS}`,
    /^[^]{1,300}$/,
    'capabilities = ["http:api.example.com"]',
  ).default([]),
  timeout_ms: int(1, 60_000, 'maximum milliseconds for one attempt of a call', 'timeout_ms = 5000').default(
    5_000,
  ),
  memory_mb: int(1, 1_024, 'MiB of memory for one call', 'memory_mb = 64').default(64),
  retry: PluginRetry,
});

const place = (what: string, example: string) => shownText(what, example, 200).optional();
const Binding = z.strictObject({
  agent: name('agent = "main"'),
  // By default that of the agent.
  workspace: workspace().optional(),
  channel: place('a channel', 'channel = "telegram"'),
  account: place('an account', 'account = "support"'),
  peer: place('a peer', 'peer = "+15551234567"'),
  guild: place('a guild', 'guild = "1234"'),
  team: place('a team', 'team = "T024BE7LD"'),
});

const limits = {
  session: tokens('limit of one session', 'session = 100000').nullable().default(null),
  daily: tokens('limit of one UTC day', 'daily = 1000000').nullable().default(null),
  monthly: tokens('limit of one UTC month', 'monthly = 20000000').nullable().default(null),
  session_usd: usd('limit of one session', 'session_usd = 0.50').nullable().default(null),
  daily_usd: usd('limit of one UTC day', 'daily_usd = 5.00').nullable().default(null),
  monthly_usd: usd('limit of one UTC month', 'monthly_usd = 100').nullable().default(null),
};
const WorkspaceBudgets = z.strictObject({ workspace: oneWorkspace(), ...limits });
const Budgets = z.strictObject({ ...limits, workspaces: list(WorkspaceBudgets, 'budgets.workspaces') });

const cachePrice = (what: string, key: string) =>
  usd(`price of a million input tokens ${what}`, key).nullable().default(null);

const Price = z.strictObject({
  provider: shownText("a provider's name or kind, or *", 'provider = "anthropic"', 64),
  model: shownText("a model's name, in which * stands for any characters", 'model = "claude-sonnet-*"', 200),
  input_per_mtok: usd('price of a million input tokens', 'input_per_mtok = 3.00'),
  output_per_mtok: usd('price of a million output tokens', 'output_per_mtok = 15.00'),
  cache_read_per_mtok: cachePrice('read from a prompt cache', 'cache_read_per_mtok = 0.30'),
  cache_write_per_mtok: cachePrice('written to a prompt cache', 'cache_write_per_mtok = 3.75'),
  cache_write_1h_per_mtok: cachePrice(
    'written to a prompt cache for an hour',
    'cache_write_1h_per_mtok = 6.00',
  ),
});

const Memory = z.strictObject({
  episodic_window: int(
    1,
    100,
    'recent turns that a model sees verbatim; the window moves when it has half as many more',
    'episodic_window = 5',
  ).default(5),
  context_tokens: int(
    256,
    1_000_000,
    "bound of an assembled context in tokens; without it, half of the model's window, at most 48000",
    'context_tokens = 4000',
  ).optional(),
  semantic_enabled: bool('whether facts are learned and recalled', 'semantic_enabled = true').default(true),
});

const feature = (what: string, key: string) => bool(what, `${key} = true`).default(true);

const Features = z.strictObject({
  agent_runtime_v1: feature('methods, routes and frames of agents are served', 'agent_runtime_v1'),
  memory_v1: feature('memory is used', 'memory_v1'),
  workers_v1: feature('methods and routes of tasks and workers are served', 'workers_v1'),
});

const Retention = z.strictObject({
  events_days: int(
    0,
    36_500,
    'days before old events may be archived, where 0 means never',
    'events_days = 30',
  ).default(30),
  idempotency_days: int(1, 3_650, 'days until a key is free', 'idempotency_days = 7').default(7),
  max_log_bytes: int(
    1_048_576,
    2 ** 50,
    'bytes of the events of a workspace in the log, above which it takes no new work',
    'max_log_bytes = 68719476736',
  ).default(64 * 1024 ** 3),
  metrics_days: int(
    0,
    36_500,
    'days before samples of what agents use are deleted, where 0 means never',
    'metrics_days = 30',
  ).default(30),
  state_changes_days: hint(
    z
      .int()
      .min(0)
      .max(36_500)
      .refine((days) => days === 0 || days > COMPARED_DAYS),
    `days before changes of the states of agents are deleted: 0 for never, or from ${COMPARED_DAYS + 1} to 36500`,
    'state_changes_days = 31',
  ).default(31),
});

const Messages = z.strictObject({
  max_hops: int(
    1,
    64,
    'maximum number of questions and hand-overs from agent to agent in one chain',
    'max_hops = 8',
  ).default(8),
});

/**
 * Schema of the file (docs/contract.md §2). An absent key gets its default here, unless the default
 * depends on another key.
 */
export const ConfigFile = z.strictObject({
  gateway: section(Gateway, 'gateway'),
  providers: list(Provider, 'providers'),
  agents: list(Agent, 'agents'),
  ...{ plugins: list(Plugin, 'plugins'), channels: list(Channel, 'channels') },
  ...{ mcp: section(Mcp, 'mcp'), tools: section(Tools, 'tools') },
  ...{ bindings: list(Binding, 'bindings'), budgets: section(Budgets, 'budgets') },
  prices: list(Price, 'prices'),
  parameters: list(Parameters, 'parameters'),
  memory: section(Memory, 'memory'),
  features: section(Features, 'features'),
  files: section(Files, 'files'),
  ...{ retention: section(Retention, 'retention'), messages: section(Messages, 'messages') },
});
export type ConfigFile = z.infer<typeof ConfigFile>;
