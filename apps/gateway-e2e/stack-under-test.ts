import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { sleep } from '@antiphon/kernel';
import pg from 'pg';
import type { FrameStream } from '@antiphon/testing/client';
import { startStack, type StartStackOptions, type TestStack } from '@antiphon/testing/stack';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const CLI = `${ROOT}/apps/cli/bin/antiphon.mjs`;
const POLL_MS = 50;

export interface LoggedEvent {
  readonly position: number;
  readonly streamId: string;
  readonly streamVersion: number;
  readonly eventId: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly recordedAt: string;
}

/** The provider's key in every e2e stack. No output may contain it. */
export const CANARY_KEY = 'sk-CANARY-6f1d0b7e-2f53-4b53-9d0a-0b1d5b0f4a11';

/** Configures two agents on one mock: `claude` in Anthropic's format, `gpt` in OpenAI's. */
export const twoVendorConfig = (mockUrl: string, gatewaySettings = ''): string => `
[gateway]
host = "127.0.0.1"
port = 0
${gatewaySettings}

[[providers]]
name = "anthropic"
kind = "anthropic"
base_url = "${mockUrl}"
api_key_env = "E2E_PROVIDER_KEY"

[[providers]]
name = "openai"
kind = "openai"
base_url = "${mockUrl}/v1"
api_key_env = "E2E_PROVIDER_KEY"

[[agents]]
id = "claude"
workspace = "*"
name = "Claude"
provider = "anthropic"
model = "claude-sonnet-4"
system_prompt = "You are terse."
tools = ["calculator", "echo"]

[[agents]]
id = "gpt"
workspace = "*"
name = "Gpt"
provider = "openai"
model = "gpt-4o"
tools = ["calculator", "echo"]
`;

/** Configures agents of the scripted provider, which needs no key. */
export const scriptedConfig = (agents: string, gatewaySettings = ''): string => `
[gateway]
host = "127.0.0.1"
port = 0
${gatewaySettings}

[[providers]]
name = "scripted"
kind = "scripted"
${agents}`;

export const startStackWith = (
  config: string,
  scale: StartStackOptions['scale'] = {},
  { env, ...more }: Pick<StartStackOptions, 'shareDatabase' | 'isHosting' | 'env'> = {},
): Promise<TestStack> => {
  const own = { E2E_PROVIDER_KEY: CANARY_KEY, ANTIPHON_LOG_ROOT_EVERY_S: '1' };
  return startStack({ config, scale, env: { ...own, ...env }, ...more });
};

/** Starts a stack on PostgreSQL of the test run, for specs that leave the engines alone. */
export const startQuickStack = (config: string, scale?: StartStackOptions['scale']): Promise<TestStack> =>
  startStackWith(config, scale, { shareDatabase: true });

/** Waits until a signed root covers every event that the log has now. */
export const waitForRoot = async ({ databaseUrl }: Pick<TestStack, 'databaseUrl'>): Promise<void> => {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const head = (await client.query<{ value: string }>('select max(position) as value from events')).rows[0];
  try {
    await waitForValue('a root over the whole log', async () => {
      const { rowCount } = await client.query('select from log_roots where position >= $1', [head?.value]);
      return rowCount === 0 ? undefined : true;
    });
  } finally {
    await client.end();
  }
};

/** Reads all matching events through the gateway, oldest first. */
export const readEvents = async (
  stack: TestStack,
  query: Readonly<Record<string, string>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<LoggedEvent[]> => {
  const events: LoggedEvent[] = [];
  let cursor: string | null = null;
  do {
    const params = new URLSearchParams({ ...query, limit: '1000', ...(cursor === null ? {} : { cursor }) });
    const response = await fetch(`${stack.gatewayUrl}/api/v1/events?${params}`, { headers });
    if (!response.ok) throw new Error(`GET /api/v1/events: ${response.status} ${await response.text()}`);
    const page = (await response.json()) as { events: LoggedEvent[]; nextCursor: string | null };
    events.push(...page.events);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return events;
};

/** Polls until `read` returns a value: for facts that another process writes by itself. */
export const waitForValue = async <T>(
  what: string,
  read: () => Promise<T | undefined>,
  deadlineMs = 30_000,
): Promise<T> => {
  const deadline = Date.now() + deadlineMs;
  for (;;) {
    const found = await read();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`timed out waiting for ${what}`);
    await sleep(POLL_MS);
  }
};

export interface AcceptedTurn {
  readonly sessionId: string;
  readonly turnId: string;
}

export const waitForAccepted = async (stream: FrameStream): Promise<AcceptedTurn> =>
  (await stream.waitFor('accepted', ({ event }) => event === 'accepted')).data as AcceptedTurn;

export interface CliRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command line as a user of this stack would. */
export const runCli = (
  stack: Pick<TestStack, 'home'>,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<CliRun> =>
  new Promise((resolve) => {
    const options = {
      env: { ...process.env, NODE_OPTIONS: '', ANTIPHON_HOME: stack.home, ...env },
      cwd: stack.home,
    };
    execFile(process.execPath, [CLI, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    );
  });

/** Response of the REST API. */
export interface ApiAnswer<T> {
  readonly status: number;
  readonly body: T & { readonly code?: string; readonly detail?: string };
  readonly retryAfter: string | null;
}

type CallApi = <T = Record<string, unknown>>(
  token: string,
  method: string,
  /** Path below `/api/v1`. */
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<ApiAnswer<T>>;

/** Returns a function that sends JSON requests to the REST API. Errors of the API are answers, too. */
export const createApiCaller =
  (gatewayUrl: () => string): CallApi =>
  async (token, method, path, body, headers = {}) => {
    const response = await fetch(`${gatewayUrl()}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const retryAfter = response.headers.get('retry-after');
    return { status: response.status, body: text === '' ? {} : JSON.parse(text), retryAfter };
  };
