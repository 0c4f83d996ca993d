import type { SessionCommand } from '@antiphon/agent-domain';
import { failpoint, isAppError } from '@antiphon/kernel';
import type { SessionLog } from '../sessions/session-log.js';
import type { SessionRegistry } from '../sessions/session-registry.js';

const MAX_ROUNDS = 5;

/** Decides about an approval on the newest fold, appends, and wakes whoever drives the session, or drives it here. */
export const commitApproval = async (
  { log }: { readonly log: SessionLog },
  registry: SessionRegistry,
  { workspace, sessionId }: { readonly workspace: string; readonly sessionId: string },
  command: SessionCommand,
): Promise<void> => {
  for (let round = 1; ; round++) {
    const { actor, driver, claim } = await registry.requireSession(workspace, sessionId);
    try {
      await actor.commit(({ state }) => ({ events: log.decider.decide(command, state) }));
    } catch (error) {
      if (!isAppError(error) || error.code !== 'LOG.FENCED' || round === MAX_ROUNDS) throw error;
      continue;
    }
    await failpoint('agent.approval.answered');
    registry.wakeDriver({ actor, driver, claim });
    return;
  }
};
