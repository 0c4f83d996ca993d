import type { PlanCommand, PlanFold, planDecider, renderPlan } from '@antiphon/agent-domain';
import type { TextEdit } from '@antiphon/files-domain';
import type { AgentSpec, WorkflowDefinition, WorkflowSource } from '@antiphon/contracts/agent';
import { textJobsOf } from '@antiphon/service-host/worker-pool';

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

/** A line that a search found. */
export interface FoundLine {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

export interface SearchQuery {
  readonly query: string;
  readonly regex: boolean;
  readonly ignoreCase: boolean;
  readonly limit: number;
}

/** Texts of files in one buffer, which moves to the thread without another copy. */
export interface SearchBatch {
  readonly query: SearchQuery;
  readonly bytes: Uint8Array;
  readonly files: readonly (readonly [path: string, length: number])[];
  /** Time after which no further slice is searched, ms. */
  readonly forMs: number;
}

export interface BatchResult {
  readonly found: FoundLine[];
  readonly cutLines: number;
  readonly isTruncated: boolean;
}

/** Values of a role's agent in the front matter of its file. */
export type RoleSettings = Partial<Pick<AgentSpec, 'name' | 'base' | 'provider' | 'model' | 'tools'>> & {
  readonly description?: string | undefined;
};

/** Functions that threads run. Each folder implements its own, and `text-jobs.ts` joins them. */
export type TextJobs = {
  readonly editFile: (job: EditJob) => Uint8Array;
  readonly findIgnored: (job: IgnoredJob) => Uint32Array;
  readonly searchBatch: (batch: SearchBatch) => BatchResult;
  readonly decidePlan: (
    plan: readonly [command: PlanCommand, state: PlanFold],
  ) => ReturnType<typeof planDecider.decide>;
  readonly renderPlan: (document: Parameters<typeof renderPlan>[0]) => Uint8Array;
  readonly parseDefinition: (source: WorkflowSource) => Promise<WorkflowDefinition>;
  readonly parseRoleFile: (file: readonly [role: string, bytes: Uint8Array]) => Promise<RoleSettings>;
};

export const textJobs = textJobsOf<TextJobs>(import.meta.url);
