import type { AgentSpec, ArgumentProblem } from '@antiphon/contracts/agent';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import type { JsonValue } from '@antiphon/kernel';
import { textJobsOf } from '@antiphon/service-host/worker-pool';

/** Values of a role's agent in the front matter of its file. */
export type RoleSettings = Partial<
  Pick<AgentSpec, 'name' | 'base' | 'provider' | 'model' | 'tools' | 'thinking'>
> & {
  readonly description?: string | undefined;
};

/** Functions that threads run. */
export type ConversationJobs = {
  readonly checkArguments: (
    call: readonly [schema: ToolDescription['inputSchema'], input: JsonValue],
  ) => Promise<ArgumentProblem[]>;
  readonly parseRoleFile: (file: readonly [role: string, bytes: Uint8Array]) => Promise<RoleSettings>;
};

export const conversationJobs = textJobsOf<ConversationJobs>(import.meta.url);
