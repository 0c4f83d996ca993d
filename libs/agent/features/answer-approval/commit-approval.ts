import type { SessionCommand } from '@antiphon/agent-domain';
import { failpoint, isAppError } from '@antiphon/kernel';
import type { SessionLog } from '../session-log/session-log.js';
import type { SessionLanes } from '../drive-session/session-lanes.js';

const MAX_ROUNDS = 5;

/** Decides about an approval on the newest fold, appends, and wakes whoever drives the session, or drives it here. */
export const commitApproval = async (
  { log }: { readonly log: SessionLog },
  lanes: SessionLanes,
  { workspace, sessionId }: { readonly workspace: string; readonly sessionId: string },
  command: SessionCommand,
): Promise<void> => {
  for (let round = 1; ; round++) {
    const { lane, driver, claim } = await lanes.existing(workspace, sessionId);
    try {
      await lane.commit(({ state }) => ({ events: log.decider.decide(command, state) }));
    } catch (error) {
      if (!isAppError(error) || error.code !== 'LOG.FENCED' || round === MAX_ROUNDS) throw error;
      continue;
    }
    await failpoint('agent.approval.answered');
    if (lane.lease.held()) driver.kick();
    else if (!claim.owned) lanes.notify(claim.owner, workspace, sessionId);
    return;
  }
};
