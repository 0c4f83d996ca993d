import { readdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { tryLock } from '@antiphon/bootstrap/lock';
import type { Lock } from '@antiphon/bootstrap/types';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import { createProgress } from '@antiphon/bootstrap/progress';
import { endOrphans } from '@antiphon/bootstrap/stop-stack';
import { explainSystemError, UserError } from '@antiphon/bootstrap/user-error';
import { configProblems, loadConfig, renderConfigErrors } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';
import { isAppError } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { ensureCredentials } from '../home/credentials.js';
import { assertLoopback, createPorts } from '../home/ports.js';
import { prepareHome } from '../home/prepare-home.js';
import { mountEngines } from '../mounts/mount-engines.js';
import { rotateLog } from '../process/bounded-log.js';
import { createChildrenRecord, readChildren } from '../process/children-record.js';
import { removeStack, writeStack } from '../stack-json.js';
import type { StackJson } from '../stack-json.js';
import type { Scale } from '../stack-options.js';
import type { Channel } from './channel.js';
import type { SupervisorArguments } from './messages.js';
import { viewStack } from './stack-view.js';
import { createStack } from './stack.js';
import type { Stack, StackPlan } from './stack.js';
import { listenForStop } from './stop-request.js';
import type { StopRequest } from './stop-request.js';

const HOUSEKEEPING_MS = 2_000;

interface Supervision {
  readonly args: SupervisorArguments;
  readonly channel: Channel;
  readonly logger: Logger;
  readonly paths: HomeLayout;
  readonly lock: Lock;
  readonly stop: StopRequest;
}

const readConfig = (): AntiphonConfig =>
  loadConfig({ env: process.env, cwd: process.cwd(), homeDir: process.env['HOME'] ?? homedir() });

const noteTo =
  ({ channel, logger }: Supervision) =>
  (line: string): void => {
    logger.info(line);
    channel.send({ type: 'progress', line: `  ${line}` });
  };

const rotateLogs = (paths: HomeLayout, logger: Logger): void => {
  for (const name of readdirSync(paths.logs).filter((file) => file.endsWith('.log'))) {
    try {
      rotateLog(join(paths.logs, name));
    } catch (error) {
      logger.warn({ err: error, log: name }, 'a log could not be rotated');
    }
  }
};

/** Bounds the logs, and ends a stack whose home was deleted under it: nobody could find it any more to stop it. */
const keepHouse =
  ({ lock, stop, paths, logger }: Supervision) =>
  (): void => {
    if (lock.isHeld()) rotateLogs(paths, logger);
    else stop.request('its home was deleted');
  };

/** Everything that the stack is made from, of this home and this configuration. */
const makePlan = (supervision: Supervision, config: AntiphonConfig, changed: () => void): StackPlan => {
  const { args, logger, paths, lock, stop, channel } = supervision;
  const note = noteTo(supervision);
  const formerServiceIds = readChildren(paths).flatMap(({ serviceId }) => serviceId ?? []);
  return {
    context: {
      paths,
      logger,
      credentials: ensureCredentials(paths),
      ports: createPorts({ paths, note }),
      usualPorts: args.usualPorts,
      adopt: lock.adopt,
    },
    hooks: { logger, note, changed, children: createChildrenRecord(paths, lock.isHeld) },
    progress: createProgress((line) => channel.send({ type: 'progress', line })),
    root: args.root,
    cache: args.cache,
    env: process.env,
    signal: stop.signal,
    config,
    scale: args.scale as Scale,
    cwd: process.cwd(),
    mainFiles: args.mainFiles ?? {},
    formerServiceIds,
  };
};

/** Keeps `stack.json` equal to the stack; a full disk is told in the log and stops nothing that runs. */
const createPublisher = ({ paths, logger, lock }: Supervision) => {
  const startedAt = new Date().toISOString();
  let state: StackJson['state'] = 'starting';
  let stack: Stack | null = null;
  const view = (parts: Stack): StackJson => viewStack({ ...parts, paths, startedAt, state });
  const publish = (): void => {
    if (stack === null || !lock.isHeld()) return;
    try {
      writeStack(paths.home, view(stack));
    } catch (error) {
      logger.error({ err: error }, 'stack.json could not be written');
    }
  };
  return {
    publish,
    follow: (parts: Stack) => void (stack = parts),
    enter: (next: StackJson['state'], parts: Stack): StackJson => {
      state = next;
      publish();
      return view(parts);
    },
  };
};

/** Runs the stack until somebody wishes it to stop, or its start fails; leaves no process in either case. */
const runStack = async (supervision: Supervision): Promise<void> => {
  const { stop, channel } = supervision;
  const note = noteTo(supervision);
  const publisher = createPublisher(supervision);
  const config = readConfig();
  await assertLoopback();
  for (const warning of config.warnings) note(`configuration: ${warning}`);
  const plan = makePlan(supervision, config, publisher.publish);
  const stack = createStack(plan, await mountEngines(plan));
  publisher.follow(stack);
  const housekeeping = setInterval(keepHouse(supervision), HOUSEKEEPING_MS);
  try {
    const started = stack.start();
    // After a wish to stop, the start fails in its own way, which no longer matters.
    started.catch(() => undefined);
    await Promise.race([started, stop.wished]);
    if (!stop.signal.aborted) channel.send({ type: 'ready', stack: publisher.enter('ready', stack) });
    await stop.wished;
  } finally {
    clearInterval(housekeeping);
    publisher.enter('stopping', stack);
    await stack.stop(note, stop.urgent);
  }
};

const superviseLocked = async (supervision: Supervision): Promise<void> => {
  const { paths, lock } = supervision;
  try {
    await endOrphansOf(supervision);
    await runStack(supervision);
  } finally {
    lock.endChildren();
    // The home may have been deleted, and be somebody else's by now.
    if (lock.isHeld()) {
      rmSync(paths.childrenFile, { force: true });
      removeStack(paths.home);
    }
  }
};

/** What a supervisor that was killed left running; its record of lease owners is still needed afterwards. */
const endOrphansOf = async (supervision: Supervision): Promise<void> => {
  await endOrphans(supervision.paths.home, noteTo(supervision), { keepRecord: true });
};

/** What to tell a person, and the exit code. */
const describeFailure = (error: unknown, home: string): { message: string; exitCode: number } => {
  if (configProblems(error).length > 0) return { message: renderConfigErrors(error), exitCode: 2 };
  const system = explainSystemError(error, `the home ${home}`);
  if (system !== null) return { message: system, exitCode: 1 };
  if (error instanceof UserError) return { message: error.message, exitCode: error.exitCode };
  if (isAppError(error)) return { message: `${error.message} (${error.code})`, exitCode: 1 };
  return { message: error instanceof Error ? (error.stack ?? error.message) : String(error), exitCode: 1 };
};

/**
 * Runs a stack as this process, from its lock to its last child's end.
 * @returns the exit code: 0 after an orderly stop, or when another supervisor holds the home
 */
export const runSupervisor = async (
  args: SupervisorArguments,
  channel: Channel,
  logger: Logger,
): Promise<number> => {
  const stop = listenForStop(channel, logger);
  try {
    const paths = prepareHome(args.home);
    const attempt = await tryLock(paths.lockFile);
    if (!attempt.acquired) {
      channel.send({ type: 'held', pid: attempt.holder?.pid ?? 0 });
      return 0;
    }
    const { lock } = attempt;
    try {
      await superviseLocked({ args, channel, logger, paths, lock, stop });
    } finally {
      lock.release();
    }
    return 0;
  } catch (error) {
    if (stop.signal.aborted) return 0;
    const failure = describeFailure(error, args.home);
    logger.error({ err: error }, 'the stack could not be started');
    channel.send({ type: 'failed', ...failure });
    return failure.exitCode;
  }
};
