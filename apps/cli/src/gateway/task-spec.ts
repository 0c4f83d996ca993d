import { parseBudget, parseWhole, splitNames } from './agent-views.js';
import { parseTime } from './key.command.js';

/** Options of `task create`. */
export interface CreateOptions {
  readonly title?: string;
  readonly agent?: string;
  readonly capabilities?: string;
  readonly priority?: string;
  readonly project?: string;
  readonly parent?: string;
  readonly retryOf?: string;
  readonly deadline?: string;
  readonly strikes?: string;
  readonly backoff?: string;
  readonly budgetTokens?: string;
  readonly budgetUsd?: string;
  readonly external?: boolean;
  readonly watch?: boolean;
}

/** Returns the body that creates a task. Throws `CLI.USAGE`. */
export const taskSpecOf = (prompt: string, options: CreateOptions): Record<string, unknown> => {
  const { title, agent, capabilities, priority, project, parent, deadline, strikes, backoff } = options;
  const retry = {
    ...(strikes === undefined ? {} : { strikes: parseWhole('--strikes', strikes) }),
    ...(backoff === undefined ? {} : { backoffMs: parseWhole('--backoff', backoff) }),
  };
  return {
    ...{ prompt, title, agent, project },
    capabilities: capabilities === undefined ? undefined : splitNames(capabilities),
    priority: priority === undefined ? undefined : parseWhole('--priority', priority),
    ...{ parentTask: parent, retryOf: options.retryOf },
    deadline: deadline === undefined ? undefined : parseTime('--deadline', deadline),
    retry: Object.keys(retry).length === 0 ? undefined : retry,
    budget: parseBudget(options),
    worker: options.external === true ? 'external' : undefined,
  };
};
