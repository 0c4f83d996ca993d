/** Reason for which a task of the queue waits. */
export interface TaskWaitFields {
  /**
   * `no_agent`: no living agent can do it. `paused`: those that can take no work. `busy`: those
   * that can do it work. `next`: one is idle. `retry`: it waits for `until`. `worker`: an external
   * worker has to claim it.
   */
  readonly reason: 'no_agent' | 'paused' | 'busy' | 'next' | 'retry' | 'worker';
  /** Capabilities that no living agent has; all of the task if no agent has them together. */
  readonly missing: readonly string[];
  /** Agent that must do it; null for any with the capabilities. */
  readonly agentId: string | null;
  /** Place among the tasks that wait for the same agents, from 1; null without one. */
  readonly place: number | null;
  readonly until: string | null;
}

const placeOf = ({ place }: TaskWaitFields): string => (place === null ? '' : `, place ${place}`);

/** Returns the text of a reason, such as `no agent has tide-data` or `agent busy, place 3`. */
export const textOfTaskWait = (wait: TaskWaitFields): string => {
  const { reason, missing, agentId, until } = wait;
  switch (reason) {
    case 'no_agent':
      if (agentId !== null) return `the agent ${agentId} is gone`;
      return missing.length === 0 ? 'there is no agent' : `no agent has ${missing.join(', ')}`;
    case 'paused':
      return `${agentId ?? 'agent'} paused${placeOf(wait)}`;
    case 'busy':
      return `${agentId ?? 'agent'} busy${placeOf(wait)}`;
    case 'next':
      return 'assigned next';
    case 'retry':
      return `tried again at ${until ?? 'a later time'}`;
    case 'worker':
      return 'waits for an external worker';
  }
};
