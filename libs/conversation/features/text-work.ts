import type { AgentSpec } from '@antiphon/contracts/agent';
import { textJobsOf } from '@antiphon/service-host/worker-pool';

/** Values of a role's agent in the front matter of its file. */
export type RoleSettings = Partial<
  Pick<AgentSpec, 'name' | 'base' | 'provider' | 'model' | 'tools' | 'thinking'>
> & {
  readonly description?: string | undefined;
};

/** Functions that threads run. */
export type RoleJobs = {
  readonly parseRoleFile: (file: readonly [role: string, bytes: Uint8Array]) => Promise<RoleSettings>;
};

export const roleJobs = textJobsOf<RoleJobs>(import.meta.url);
