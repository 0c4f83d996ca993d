import { setTimeout as sleep } from 'node:timers/promises';
import { driverNotificationSubject } from '@antiphon/contracts/agent';
import { WorkspaceId } from '@antiphon/contracts/log';
import { z } from 'zod';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { SessionRegistry } from './session-registry.js';
import type { FoundSession } from './find-abandoned.js';

const MAX_FOUND = 200;
/** Sessions taken over at the same time: a start after a crash must not starve new turns of connections. */
const PARALLEL = 8;

const Hint = z.object({ workspace: WorkspaceId, sessionId: z.uuid() });

/** Takes over what has no driver: turns whose process died, turns that were accepted while nobody could begin them. */
export const takeOverAbandoned = async (
  find: (limit: number) => Promise<readonly FoundSession[]>,
  registry: Pick<SessionRegistry, 'wake'>,
  logger: Logger,
): Promise<void> => {
  const found = [...(await find(MAX_FOUND))];
  const take = async (): Promise<void> => {
    for (let session = found.shift(); session; session = found.shift()) {
      const { workspace, sessionId } = session;
      await registry.wake(workspace, sessionId).catch((error: unknown) => {
        logger.warn(
          { err: error, workspace, sessionId },
          'a session could not be taken over; it will be tried again',
        );
      });
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, take));
};

/** Between two looks at whether sessions are still at work, ms. */
const LOOK_MS = 20;

/** Resolves when no session is at work, or after so many ms. */
export const untilIdle = async (
  registry: Pick<SessionRegistry, 'working'>,
  withinMs: number,
): Promise<void> => {
  const deadline = performance.now() + withinMs;
  while (registry.working() > 0 && performance.now() < deadline) await sleep(LOOK_MS);
};

/** Listens for the other agent processes: a session that this one drives was added to. Answers how to stop. */
export const onDriverNotification = (
  nats: NatsLink,
  owner: string,
  registry: Pick<SessionRegistry, 'wake'>,
  logger: Logger,
): (() => void) => {
  const look = async (payload: unknown): Promise<void> => {
    const { workspace, sessionId } = Hint.parse(payload);
    await registry.wake(workspace, sessionId);
  };
  const subscription = nats.connection.subscribe(driverNotificationSubject(owner), {
    callback: (_error, message) => {
      Promise.resolve()
        .then(() => look(message.json()))
        .catch((error: unknown) => logger.warn({ err: error }, 'a hint could not be followed; a sweep will'));
    },
  });
  return () => subscription.unsubscribe();
};
