import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { recordHome, TEST_RUN } from '@antiphon/bootstrap/test-run';
import { readStack, up } from '@antiphon/stack';
import type { RunningStack, Scale, StackJson } from '@antiphon/stack';
import { createTestDatabase } from '../test-database.js';
import type { TestDatabase } from '../test-database.js';

export interface StartStackOptions {
  /** Text of its antiphon.toml. Default: the built-in configuration. */
  readonly config?: string;
  /** Variables in addition to a bare environment: providers' keys, log level, failpoints. */
  readonly env?: Readonly<Record<string, string>>;
  readonly scale?: Partial<Scale>;
  /**
   * True runs memory and metering in the process of the agent, as `npm start -- --compact` does.
   * Default: `ANTIPHON_TEST_FORM` is `compact`.
   */
  readonly isHosting?: boolean;
  /**
   * Uses PostgreSQL (with a database of its own) and Temporal of the test run. NATS is always its
   * own.
   */
  readonly shareEngines?: boolean;
  /** Uses PostgreSQL of the test run, with a database of its own: a start without initdb. */
  readonly shareDatabase?: boolean;
  /** False does not restart services that hang, for specs that suspend and continue them. */
  readonly watchesHealth?: boolean;
  /** Programs that replace the joined modules of services, by name. */
  readonly mainFiles?: Readonly<Record<string, string>>;
  /** Folder in which the home is made. Default: that for temporary files. */
  readonly parent?: string;
  /** Called with the new home before anything is in it. */
  readonly prepareHome?: (home: string) => void;
  /** Makes `stop` keep the home with its data and logs. */
  readonly keepHome?: boolean;
}

/** A whole stack for one spec: the real supervisor with the real services. */
export interface TestStack {
  readonly home: string;
  readonly gatewayUrl: string;
  readonly wsUrl: string;
  /** Address with the role that owns the tables. */
  readonly databaseUrl: string;
  /** Credentials of the operator, who may publish and subscribe to everything. */
  readonly nats: { readonly url: string; readonly user: string; readonly password: string };
  readonly temporalAddress: string;
  /** Returns the `/ws` address of every gateway. */
  wsUrls(): string[];
  /** Returns the current state: process ids change when a process is killed. */
  stackJson(): StackJson;
  /** Reads the log of a process, e.g. of `agent-1`, `supervisor`, `postgresql`. */
  readLog(process: string): string;
  /** Stops it in order, runs `between`, and starts it again on the same home. */
  restart(between?: () => void | Promise<void>): Promise<TestStack>;
  /** Stops it in order and removes its home. */
  stop(): Promise<void>;
}

/**
 * Variables that a stack inherits. No other one may make a spec pass on one machine and fail on
 * another.
 */
const INHERITED = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'TZ', 'ANTIPHON_CACHE', 'ANTIPHON_POSTGRES_BIN'];
const ALSO_INHERITED = ['ANTIPHON_NATS_SERVER', 'ANTIPHON_TEMPORAL', 'XDG_CACHE_HOME', TEST_RUN];

/** Whether the run tests the compact form, where a spec names no form. */
export const isCompactRun = (): boolean => process.env['ANTIPHON_TEST_FORM'] === 'compact';

const bareEnvironment = (): Record<string, string | undefined> =>
  Object.fromEntries([...INHERITED, ...ALSO_INHERITED].map((name) => [name, process.env[name]]));

const writeConfig = (home: string, config: string | undefined): Record<string, string> => {
  if (config === undefined) return {};
  const path = join(home, 'antiphon.toml');
  writeFileSync(path, config);
  return { ANTIPHON_CONFIG: path };
};

const sharedAddresses = (
  database: TestDatabase | null,
  { shareEngines }: StartStackOptions,
): Record<string, string | undefined> => ({
  ...(database === null ? {} : { ANTIPHON_DATABASE_URL: database.url }),
  ...(shareEngines ? { ANTIPHON_TEMPORAL_ADDRESS: process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] } : {}),
});

const operatorOf = ({ credentials }: StackJson): TestStack['nats'] => {
  const { url, users } = JSON.parse(readFileSync(credentials.natsUsersFile, 'utf8')) as {
    url: string;
    users: Record<string, { user: string; password: string }>;
  };
  return { url, user: users['operator']?.user ?? '', password: users['operator']?.password ?? '' };
};

const stopInOrder = async (running: RunningStack): Promise<void> => {
  running.requestStop();
  const failure = await running.ended;
  if (failure !== null) throw new Error(`the supervisor failed to stop in order: ${failure}`);
};

const toWsUrl = (gatewayUrl: string): string => `${gatewayUrl.replace(/^http/, 'ws')}/ws`;

type Start = () => Promise<RunningStack>;
type Remove = () => Promise<void>;

const createTestStack = (home: string, running: RunningStack, start: Start, remove: Remove): TestStack => {
  const { stack } = running;
  const gatewayUrl = stack.urls.gateway ?? '';
  return {
    home,
    gatewayUrl,
    wsUrl: toWsUrl(gatewayUrl),
    databaseUrl: readFileSync(stack.credentials.databaseUrlFile, 'utf8').trim(),
    nats: operatorOf(stack),
    temporalAddress: stack.engines.temporal.address,
    wsUrls: () => (readStack(home) ?? stack).urls.gateways.map(toWsUrl),
    stackJson: () => readStack(home) ?? stack,
    readLog: (process) => readFileSync(join(stack.logs, `${process}.log`), 'utf8'),
    restart: async (between) => {
      await stopInOrder(running);
      await between?.();
      return createTestStack(home, await start(), start, remove);
    },
    stop: () => stopInOrder(running).finally(remove),
  };
};

/**
 * Starts a stack with a home, ports and credentials of its own. It ends with `stop()`, or with this
 * process. Needs the compiled services (`npm run build`).
 */
export const startStack = async (options: StartStackOptions = {}): Promise<TestStack> => {
  const home = mkdtempSync(join(options.parent ?? tmpdir(), 'antiphon-stack-'));
  recordHome(home, 'stack');
  options.prepareHome?.(home);
  const { shareEngines, shareDatabase } = options;
  const database = shareEngines || shareDatabase ? await createTestDatabase() : null;
  const env = {
    ...bareEnvironment(),
    ...writeConfig(home, options.config),
    ...sharedAddresses(database, options),
    ...options.env,
  };
  const remove = async (): Promise<void> => {
    await database?.drop();
    if (!options.keepHome) rmSync(home, { recursive: true, force: true });
  };
  try {
    const { scale = {}, isHosting = isCompactRun(), watchesHealth = true, mainFiles } = options;
    const running = { home, env, cwd: home, usualPorts: false, scale, isHosting, watchesHealth };
    const start = () => up({ ...running, ...(mainFiles === undefined ? {} : { mainFiles }) });
    return createTestStack(home, await start(), start, remove);
  } catch (error) {
    await remove();
    throw error;
  }
};
