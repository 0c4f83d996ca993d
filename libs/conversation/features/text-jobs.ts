import type { ConversationJobs } from './text-work.js';

/** Functions that run in the threads of `text-work.ts`. They are pure. */
export const jobs: ConversationJobs = {
  checkArguments: async ([schema, input]) => {
    const { checkArguments } = await import('./approvals/check-arguments.js');
    return checkArguments(schema, input);
  },
  // The schemas of role files are loaded by the first one only.
  parseRoleFile: async ([role, bytes]) => {
    const { parseRoleFile } = await import('./chats/role-settings.js');
    return parseRoleFile(role, bytes);
  },
};
