import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { lockHolder } from '@antiphon/bootstrap/lock';
import { isAlive } from '@antiphon/bootstrap/processes';
import { ownEnvironment } from '@antiphon/bootstrap/own-environment';
import { bundledNode, cacheFolder, homeFolder, projectRoot } from '@antiphon/bootstrap/project';
import { stopStack } from '@antiphon/bootstrap/stop-stack';
import type { ProcessIdentity } from '@antiphon/bootstrap/types';
import { UserError } from '@antiphon/bootstrap/user-error';
import { sleep } from '@antiphon/kernel';
import { prepareHome } from './home/home.js';
import { waitUntilReady } from './readiness.js';
import { readStack } from './stack-json.js';
import type { StackJson } from './stack-json.js';
import { fullScale } from './stack-options.js';
import type { Scale } from './stack-options.js';
import type { FromSupervisor, SupervisorArguments, ToSupervisor } from './supervisor/messages.js';

export interface UpOptions {
  /** Default: `ANTIPHON_HOME`, else `./.antiphon`. */
  readonly home?: string;
  /** Processes per service; one for each that is not named. */
  readonly scale?: Partial<Scale>;
  /** True runs memory and metering in the process of the agent. Default: false. */
  readonly isHosting?: boolean;
  /** Environment of the supervisor and the services. Default: this process's. */
  readonly env?: NodeJS.ProcessEnv;
  /** Base of relative paths, and the folder of `antiphon.toml`. */
  readonly cwd?: string;
  /** False takes any free ports instead of the usual ones. */
  readonly usualPorts?: boolean;
  /** False does not restart services that hang; for tests that suspend and continue them. */
  readonly watchesHealth?: boolean;
  /** Receives lines for a person about slow steps, taken ports, exits and restarts. */
  readonly onProgress?: (line: string) => void;
  /** Aborts a start: its processes are stopped in order, then `up` rejects. */
  readonly signal?: AbortSignal;
  /** Programs that replace the services', by name; for tests of the supervisor itself. */
  readonly mainFiles?: Readonly<Record<string, string>>;
}

/** A stack that is ready. */
export interface RunningStack {
  readonly stack: StackJson;
  /** True when another process has started it. */
  readonly joined: boolean;
  /** Lets it run without this process. */
  detach(): void;
  /** Asks the supervisor that this process started to stop, by force with `now`. */
  requestStop(now?: boolean): void;
  /** Resolves at the supervisor's end to the reason, or to null after a stop in order. */
  readonly ended: Promise<string | null>;
}

const JOIN_POLL_MS = 50;
/** Longer than the supervisor needs to restart every process. */
const JOIN_TIMEOUT_MS = 60_000;

const spawnSupervisor = (args: SupervisorArguments, logs: string, options: UpOptions): ChildProcess => {
  const log = openSync(join(logs, 'supervisor.log'), 'a', 0o600);
  const main = join(projectRoot, 'tools/stack/dist/supervisor/supervisor-main.js');
  // An image has no package with Node: there the current one runs the supervisor.
  const node = existsSync(bundledNode()) ? bundledNode() : process.execPath;
  try {
    return spawn(node, [main, JSON.stringify(args)], {
      cwd: options.cwd,
      env: { ...ownEnvironment(options.env ?? process.env), ANTIPHON_HOME: args.home },
      // Its own session: it outlives this terminal, and Ctrl-C reaches it only through this
      // process.
      detached: true,
      stdio: ['ignore', log, log, 'ipc'],
    });
  } finally {
    closeSync(log);
  }
};

const send = (child: ChildProcess, message: ToSupervisor, after?: () => void): void => {
  if (child.connected) child.send(message, () => after?.());
};

type Outcome = { readonly ready: StackJson } | { readonly held: true } | { readonly failed: UserError };

const endedEarly = (how: string, logs: string, options: UpOptions): UserError =>
  options.signal?.aborted
    ? new UserError('stopped before it was ready', { exitCode: 130 })
    : new UserError(`the start was ended (${how}); its output is in ${join(logs, 'supervisor.log')}`);

const waitForOutcome = (child: ChildProcess, logs: string, options: UpOptions): Promise<Outcome> =>
  new Promise((resolve) => {
    const requestStop = (): void => send(child, { type: 'stop', now: false });
    options.signal?.addEventListener('abort', requestStop, { once: true });
    child.on('message', (raw) => {
      const message = raw as FromSupervisor;
      if (message.type === 'progress') options.onProgress?.(message.line);
      else if (message.type === 'ready') resolve({ ready: message.stack });
      else if (message.type === 'held') resolve({ held: true });
      else resolve({ failed: new UserError(message.message, { exitCode: message.exitCode }) });
    });
    child.once('error', (error) =>
      resolve({ failed: new UserError(`the supervisor could not be run: ${error.message}`) }),
    );
    child.once('exit', (code, signal) =>
      resolve({ failed: endedEarly(signal ?? `exit code ${code ?? '?'}`, logs, options) }),
    );
  });

const ownStack = (child: ChildProcess, stack: StackJson): RunningStack => ({
  stack,
  joined: false,
  ended: new Promise((resolve) =>
    child.once('exit', (code, signal) => resolve(signal ?? (code === 0 ? null : `exit code ${code ?? '?'}`))),
  ),
  requestStop: (now = false) => send(child, { type: 'stop', now }),
  detach: () =>
    send(child, { type: 'detach' }, () => {
      child.disconnect();
      child.unref();
    }),
});

const joinedStack = (stack: StackJson): RunningStack => ({
  stack,
  joined: true,
  ended: Promise.resolve(null),
  requestStop: () => undefined,
  detach: () => undefined,
});

/**
 * Waits until another supervisor's stack is ready. Returns null when that supervisor ends first.
 */
const waitForOther = async (
  home: string,
  holder: ProcessIdentity,
  signal: AbortSignal | undefined,
): Promise<StackJson | null> => {
  while (isAlive(holder)) {
    if (signal?.aborted) throw new UserError('stopped waiting for it', { exitCode: 130 });
    const stack = readStack(home);
    if (stack?.supervisor.pid === holder.pid && stack.state === 'ready')
      return waitUntilReady(() => readStack(home), { timeoutMs: JOIN_TIMEOUT_MS, signal });
    await sleep(JOIN_POLL_MS);
  }
  return null;
};

const joinOther = async (home: string, options: UpOptions): Promise<RunningStack | null> => {
  const holder = lockHolder(prepareHome(home).lockFile);
  if (holder === null) return null;
  if (readStack(home)?.state !== 'ready')
    options.onProgress?.(`  process ${holder.pid} is starting or stopping this stack; waiting for it`);
  const stack = await waitForOther(home, holder, options.signal);
  return stack === null ? null : joinedStack(stack);
};

/**
 * Starts the stack of a home, or joins the one that runs there. Resolves when it is ready; rejects
 * with a UserError. Packages, build and engines must exist, which the bootstrap provides. The stack
 * stops when this process ends, unless it is detached.
 */
export const up = async (options: UpOptions = {}): Promise<RunningStack> => {
  const {
    env = process.env,
    cwd,
    scale = {},
    isHosting = false,
    usualPorts = true,
    watchesHealth = true,
    mainFiles,
  } = options;
  const home = options.home ?? homeFolder(env, cwd);
  const { logs } = prepareHome(home);
  const running = await joinOther(home, options);
  if (running !== null) return running;
  const folders = { home, cache: cacheFolder(env), root: projectRoot };
  const child = spawnSupervisor(
    { ...folders, scale: fullScale(scale), isHosting, usualPorts, watchesHealth, mainFiles },
    logs,
    options,
  );
  const outcome = await waitForOutcome(child, logs, options);
  if ('ready' in outcome) return ownStack(child, outcome.ready);
  // Another start acquired the lock at the same moment.
  if ('held' in outcome) return up(options);
  throw outcome.failed;
};

export interface DownOptions {
  /** Default: `ANTIPHON_HOME`, else `./.antiphon`. */
  readonly home?: string;
  readonly onProgress?: (line: string) => void;
}

/** Stops the stack of a home in order and ends all of its processes. */
export const down = ({ home = homeFolder(), onProgress }: DownOptions = {}): Promise<{
  wasRunning: boolean;
}> => stopStack(home, onProgress);
