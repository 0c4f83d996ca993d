import { IgnoreRules, checkRemoval, editAll, parseIgnoreFile } from '@antiphon/files-domain';
import { planDecider, renderPlan } from '@antiphon/agent-domain';
import { searchBatch } from './native-tools/search-files.js';
import type { EditJob, IgnoredJob, TextJobs } from './text-work.js';

const editFile = ({ path, bytes, edits, removes }: EditJob): Uint8Array => {
  const edited = editAll(bytes, edits);
  checkRemoval(path, bytes, edited, removes);
  return edited;
};

/** Returns the indexes of the ignored paths. */
const findIgnored = ({ files, paths, root }: IgnoredJob): Uint32Array => {
  const decoder = new TextDecoder();
  const rules = new IgnoreRules(
    new Map(files.map(([folder, bytes]) => [folder, parseIgnoreFile(decoder.decode(bytes))])),
  );
  return Uint32Array.from(paths.flatMap((path, index) => (rules.isIgnored(path, root) ? [index] : [])));
};

/** Functions that run in the threads of `text-work.ts`. They are pure. */
export const jobs: TextJobs = {
  editFile,
  findIgnored,
  searchBatch,
  decidePlan: ([command, state]) => planDecider.decide(command, state),
  renderPlan: (document) => new TextEncoder().encode(renderPlan(document)),
  // The schemas of definitions are loaded by the first definition only.
  parseDefinition: async (source) => {
    const { parseDefinition } = await import('./runs/parse-definition.js');
    return parseDefinition(source);
  },
  parseRoleFile: async ([role, bytes]) => {
    const { parseRoleFile } = await import('./chats/role-settings.js');
    return parseRoleFile(role, bytes);
  },
};
