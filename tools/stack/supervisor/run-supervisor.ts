import { readdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { tryLock } from '@antiphon/bootstrap/lock';
import { createProgress } from '@antiphon/bootstrap/progress';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import { endOrphans } from '@antiphon/bootstrap/stop-stack';
import type { Lock } from '@antiphon/bootstrap/types';
import { explainSystemError, UserError } from '@antiphon/bootstrap/user-error';
import { configProblems, renderConfigErrors } from '@antiphon/config';
import { isAppError } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { createEngines } from '../engines/engines.js';
import { ensureCredentials, prepareHome } from '../home/home.js';
import { assertLoopback, createPorts } from '../home/ports.js';
import { rotateLog } from '../process/bounded-log.js';
import { createChildrenRecord, readChildren } from '../process/child-process.js';
import type { ChildrenRecord } from '../process/child-process.js';
import { waitUntilReady } from '../readiness.js';
import { removeStack, writeStack } from '../stack-json.js';
import type { StackJson } from '../stack-json.js';
import type { Scale } from '../stack-options.js';
import { LastGoodConfiguration } from './configuration.js';
import { listenForStop } from './messages.js';
import type { Channel, StopRequest, SupervisorArguments } from './messages.js';
import { Stack } from './stack.js';
import type { StackPlan } from './stack.js';

const HOUSEKEEPING_MS = 2_000;
/** Time for the gateways to say that they are ready, once every process has started. */
const READY_TIMEOUT_MS = 20_000;

interface Supervision {
  readonly args: SupervisorArguments;
  readonly channel: Channel;
  readonly logger: Logger;
  readonly paths: HomeLayout;
  readonly lock: Lock;
  readonly stop: StopRequest;
}

/** Runs the stack of a home under its lock and keeps `stack.json` up to date. */
class Supervisor {
  private readonly startedAt = new Date().toISOString();
  private state: StackJson['state'] = 'starting';
  private stack: Stack | null = null;
  private children: ChildrenRecord | null = null;
  /** False while `stack.json` differs from the stack, because it could not be written. */
  private isPublished = true;

  constructor(private readonly supervision: Supervision) {}

  /**
   * Runs the stack until a stop request or a failed start. Ends all of its processes in either
   * case.
   */
  async run(): Promise<void> {
    const { paths, lock } = this.supervision;
    try {
      // The record of lease owners is read later.
      await endOrphans(paths.home, this.note, { keepRecord: true });
      await this.runStack();
    } finally {
      lock.endChildren();
      // A deleted home may belong to another stack now.
      if (lock.isHeld()) {
        rmSync(paths.childrenFile, { force: true });
        removeStack(paths.home);
      }
    }
  }

  private readonly note = (line: string): void => {
    const { channel, logger } = this.supervision;
    logger.info({ line }, 'supervisor progress');
    channel.send({ type: 'progress', line: `  ${line}` });
  };

  private async runStack(): Promise<void> {
    const { stop } = this.supervision;
    const configuration = new LastGoodConfiguration({
      ...{ env: process.env, cwd: process.cwd(), homeDir: process.env['HOME'] ?? homedir() },
      ...{
        copyFile: this.supervision.paths.lastConfigFile,
        logger: this.supervision.logger,
        note: this.note,
      },
    });
    await assertLoopback();
    for (const warning of configuration.current().config.warnings) this.note(`configuration: ${warning}`);
    const plan = this.createPlan(configuration);
    const stack = new Stack(plan, await createEngines(plan));
    this.stack = stack;
    const housekeeping = setInterval(this.housekeep, HOUSEKEEPING_MS);
    try {
      const started = stack.start();
      // After a stop request the failure of the start does not matter.
      started.catch(() => undefined);
      await Promise.race([started, stop.requested]);
      if (!stop.signal.aborted) await this.announceReady(stack);
      await stop.requested;
    } finally {
      clearInterval(housekeeping);
      this.enter('stopping', stack);
      await stack.stop(this.note, stop.urgent);
    }
  }

  /** Asks the gateways, so that `ready` is what they say and not what was started. */
  private async announceReady(stack: Stack): Promise<void> {
    const { stop, channel, paths } = this.supervision;
    const view = (): StackJson => stack.view(paths, this.startedAt, 'ready');
    const options = { timeoutMs: READY_TIMEOUT_MS, signal: stop.signal };
    await Promise.race([waitUntilReady(view, options), stop.requested]);
    if (!stop.signal.aborted) channel.send({ type: 'ready', stack: this.enter('ready', stack) });
  }

  private createPlan(configuration: LastGoodConfiguration): StackPlan {
    const { args, logger, paths, lock, stop, channel } = this.supervision;
    const { note } = this;
    const children = createChildrenRecord(paths, lock.isHeld, logger);
    this.children = children;
    return {
      context: {
        paths,
        logger,
        credentials: ensureCredentials(paths),
        ports: createPorts({ paths, note }),
        usualPorts: args.usualPorts,
        adopt: lock.adopt,
        note,
      },
      hooks: {
        logger,
        note,
        changed: () => this.publish(),
        children,
      },
      progress: createProgress((line) => channel.send({ type: 'progress', line })),
      root: args.root,
      cache: args.cache,
      env: process.env,
      signal: stop.signal,
      configuration,
      watchesHealth: args.watchesHealth,
      scale: args.scale as Scale,
      isHosting: args.isHosting,
      cwd: process.cwd(),
      mainFiles: args.mainFiles ?? {},
      formerServiceIds: readChildren(paths).flatMap(({ serviceId }) => serviceId ?? []),
    };
  }

  private enter(state: StackJson['state'], stack: Stack): StackJson {
    this.state = state;
    this.publish();
    return stack.view(this.supervision.paths, this.startedAt, state);
  }

  /** Writes `stack.json`. A full disk is logged and stops no process; the file is written later. */
  private publish(): void {
    const { paths, lock, logger } = this.supervision;
    try {
      if (this.stack === null || !lock.isHeld()) return;
      writeStack(paths.home, this.stack.view(paths, this.startedAt, this.state));
      this.isPublished = true;
    } catch (error) {
      if (this.isPublished) logger.error({ err: error }, 'stack.json write failed');
      this.isPublished = false;
    }
  }

  /** Keeps the home usable. An error, on a full disk for example, leaves the rest to the next time. */
  private readonly housekeep = (): void => {
    try {
      this.keepHomeUsable();
    } catch (error) {
      this.supervision.logger.warn({ err: error }, 'housekeeping failed');
    }
  };

  /** Rotates logs, and stops a stack whose home was deleted, because `npm stop` cannot find it. */
  private keepHomeUsable(): void {
    const { lock, stop, paths, logger } = this.supervision;
    if (!lock.isHeld()) return stop.request('its home was deleted');
    this.children?.retry();
    if (!this.isPublished) this.publish();
    for (const name of readdirSync(paths.logs).filter((file) => file.endsWith('.log')))
      try {
        rotateLog(join(paths.logs, name));
      } catch (error) {
        logger.warn({ err: error, log: name }, 'log rotation failed');
      }
  }
}

/** Returns the message for a person, and the exit code. */
const describeFailure = (error: unknown, home: string): { message: string; exitCode: number } => {
  if (configProblems(error).length > 0) return { message: renderConfigErrors(error), exitCode: 2 };
  const system = explainSystemError(error, `the home ${home}`);
  if (system !== null) return { message: system, exitCode: 1 };
  if (error instanceof UserError) return { message: error.message, exitCode: error.exitCode };
  if (isAppError(error)) return { message: `${error.message} (${error.code})`, exitCode: 1 };
  return { message: error instanceof Error ? (error.stack ?? error.message) : String(error), exitCode: 1 };
};

/**
 * Runs a stack in this process, from acquiring its lock to the end of its last child. Returns the
 * exit code. It is 0 after a stop request, or when another supervisor holds the home.
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
      await new Supervisor({ args, channel, logger, paths, lock, stop }).run();
    } finally {
      lock.release();
    }
    return 0;
  } catch (error) {
    if (stop.signal.aborted) return 0;
    const failure = describeFailure(error, args.home);
    logger.error({ err: error }, 'stack start failed');
    channel.send({ type: 'failed', ...failure });
    return failure.exitCode;
  }
};
