import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { startStack, type StartStackOptions, type TestStack } from '@antiphon/testing/stack';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CLI = `${ROOT}/apps/cli/bin/antiphon.mjs`;

export interface LoggedEvent {
  readonly position: number;
  readonly streamId: string;
  readonly streamVersion: number;
  readonly eventId: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The provider's key in every e2e stack; it must show up nowhere. */
export const CANARY_KEY = 'sk-CANARY-6f1d0b7e-2f53-4b53-9d0a-0b1d5b0f4a11';

/** Two agents on one mock: `claude` in Anthropic's format, `gpt` in OpenAI's. */
export const twoVendors = (mockUrl: string, more = ''): string => `
[gateway]
host = "127.0.0.1"
port = 0
${more}

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
name = "Claude"
provider = "anthropic"
model = "claude-sonnet-4"
system_prompt = "You are terse."
tools = ["calculator", "echo"]

[[agents]]
id = "gpt"
name = "Gpt"
provider = "openai"
model = "gpt-4o"
tools = ["calculator", "echo"]
`;

export const startWith = (config: string, scale: StartStackOptions['scale'] = {}): Promise<TestStack> =>
  startStack({ config, scale, env: { E2E_PROVIDER_KEY: CANARY_KEY } });

/** All events of the log that match, oldest first, over the gateway's own door. */
export const readEvents = async (
  stack: TestStack,
  query: Readonly<Record<string, string>> = {},
): Promise<LoggedEvent[]> => {
  const events: LoggedEvent[] = [];
  let cursor: string | null = null;
  do {
    const params = new URLSearchParams({ ...query, limit: '1000', ...(cursor === null ? {} : { cursor }) });
    const answer = await fetch(`${stack.gatewayUrl}/api/v1/events?${params}`);
    if (!answer.ok) throw new Error(`GET /api/v1/events: ${answer.status} ${await answer.text()}`);
    const page = (await answer.json()) as { events: LoggedEvent[]; nextCursor: string | null };
    events.push(...page.events);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return events;
};

/** Asks again until the answer is there: for facts that another process will write by itself. */
export const eventually = async <T>(
  what: string,
  ask: () => Promise<T | undefined>,
  deadlineMs = 30_000,
): Promise<T> => {
  const deadline = Date.now() + deadlineMs;
  for (;;) {
    const found = await ask();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

export interface CliRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command line as a user of this stack would. */
export const antiphon = (
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
