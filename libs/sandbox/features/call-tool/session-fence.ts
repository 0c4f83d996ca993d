import { conflict } from '@antiphon/kernel';

/** Remembers the highest lease epoch of each session, for as many sessions as it is told to. */
export interface SessionFence {
  /** Throws `SANDBOX.FENCED` (conflict; data: epoch, actual) for a driver that another has replaced. */
  readonly check: (workspace: string, sessionId: string, epoch: number) => void;
}

export const createSessionFence = (maxSessions = 10_000): SessionFence => {
  const epochs = new Map<string, number>();
  return {
    check: (workspace, sessionId, epoch) => {
      const key = `${workspace}/${sessionId}`;
      const seen = epochs.get(key) ?? 0;
      if (epoch < seen)
        throw conflict('SANDBOX.FENCED', 'another driver has taken this session over', {
          data: { epoch, actual: seen },
        });
      epochs.delete(key); // written again last: the one that has been quiet longest is forgotten first
      epochs.set(key, epoch);
      const [oldest] = epochs.keys();
      if (epochs.size > maxSessions && oldest !== undefined) epochs.delete(oldest);
    },
  };
};
