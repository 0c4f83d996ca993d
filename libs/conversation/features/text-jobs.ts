import type { RoleJobs } from './text-work.js';

/** Functions that run in the threads of `text-work.ts`. They are pure. */
export const jobs: RoleJobs = {
  // The schemas of role files are loaded by the first one only.
  parseRoleFile: async ([role, bytes]) => {
    const { parseRoleFile } = await import('./chats/role-settings.js');
    return parseRoleFile(role, bytes);
  },
};
