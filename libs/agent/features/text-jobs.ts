import {
  IgnoreRules,
  checkRemoval,
  editAll,
  parseIgnoreFile,
  planDecider,
  renderPlan,
} from '@antiphon/agent-domain';
import type { PlanCommand, PlanFold, TextEdit } from '@antiphon/agent-domain';
import type { WorkflowSource } from '@antiphon/contracts/agent';
import { describeChange } from './files/describe-change.js';
import { searchBatch } from './native-tools/search-files.js';

export interface EditJob {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly edits: readonly TextEdit[];
  /** Number of removed lines that the caller confirms. */
  readonly removes?: number | undefined;
}

export interface IgnoredJob {
  /** Folder of each `.gitignore`, and its text. */
  readonly files: readonly (readonly [folder: string, bytes: Uint8Array])[];
  readonly paths: readonly string[];
  readonly root: string;
}

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
export const jobs = {
  describeChange: ([before, after]: readonly [Uint8Array, Uint8Array]): string =>
    describeChange(before, after),
  editFile,
  findIgnored,
  searchBatch,
  decidePlan: ([command, state]: readonly [PlanCommand, PlanFold]) => planDecider.decide(command, state),
  renderPlan: (document: Parameters<typeof renderPlan>[0]): Uint8Array =>
    new TextEncoder().encode(renderPlan(document)),
  // The schemas of definitions are loaded by the first definition only.
  parseDefinition: async (source: WorkflowSource) => {
    const { parseDefinition } = await import('./runs/parse-definition.js');
    return parseDefinition(source);
  },
  parseRoleFile: async ([role, bytes]: readonly [string, Uint8Array]) => {
    const { parseRoleFile } = await import('./chats/role-settings.js');
    return parseRoleFile(role, bytes);
  },
} as const;
