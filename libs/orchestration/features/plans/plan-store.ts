import { causedError } from '@antiphon/contracts/causes';
import { createHash } from 'node:crypto';
import { PlanEvent, planStream } from '@antiphon/contracts/agent';
import type { FileCause, FileTreeEvent } from '@antiphon/contracts/agent';
import { decideFiles } from '@antiphon/files-domain';
import { documentOf, planDecider } from '@antiphon/orchestration-domain';
import type { EndPlanRun, PlanCommand, PlanFold } from '@antiphon/orchestration-domain';
import type { FileEntry, FileLimits, FileTree } from '@antiphon/files-domain';
import { AggregateStore, retryConflicts } from '@antiphon/event-store';
import type { EventStore, IdempotencyClaim } from '@antiphon/event-store';
import { conflict, isoTime, notFound } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { fileTreeIdOf, planIdOf, eventForms } from '@antiphon/agent-log';
import { findTreeVersion } from '@antiphon/files-features';
import type { FileDecision, FileTrees } from '@antiphon/files-features';
import { TEXT_DEADLINE_MS } from '@antiphon/service-host/worker-pool';
import { workJobs } from '../text-work.js';
import { findAuthor } from './edit-author.js';

/** A plan by its file. */
export interface PlanRef {
  readonly workspace: string;
  readonly path: string;
}

const isStale = ({ path }: PlanRef): Error =>
  causedError(conflict, 'FILE.STALE', { kind: 'file_changed', path });

const noPlan = ({ path }: PlanRef): Error =>
  causedError(notFound, 'PLAN.NOT_FOUND', { kind: 'plan_missing', path });

/** Author of a change. */
export interface PlanActor {
  /** `agent/<id>`, the caller of a request, or `runtime`. */
  readonly actor: string;
  readonly agentId: string | null;
  /** Turn and tool call of an agent's change. */
  readonly cause?: Omit<FileCause, 'actor'>;
}

/** A plan, and its file at the same time. */
export interface PlanAt {
  readonly state: PlanFold;
  /** Null for a removed file. */
  readonly file: FileEntry | null;
  /** True if the file is no plan: the facts stay until it is one again. */
  readonly isInvalid: boolean;
  /** The newest tool calls that changed the tree. */
  readonly calls: Pick<FileTree['calls'], 'has'>;
}

type Command = Pick<PlanCommand, 'type' | 'data'>;
/** Decides on the facts, which have every edit of the file. */
export type DecidePlan = (at: PlanAt) => readonly Command[];

export interface PlanStoreDeps {
  readonly store: EventStore;
  readonly trees: Pick<FileTrees, 'commit' | 'read' | 'readBytes' | 'putBytes' | 'readFacts'>;
  readonly fileLimits: (workspace: string) => FileLimits;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** Actor of facts that a read takes over from the file. */
const READER = { actor: 'runtime', agentId: null };
const MAX_ROUNDS = 20;
/** Commands with the text of a file. */
const HAS_TEXT: ReadonlySet<string> = new Set(['CreatePlan', 'MergePlanEdit']);
/** Files that are larger are no plans. */
const MAX_BYTES = 8 * 1024 * 1024;

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Facts that are to be appended to a plan. */
interface Draft {
  readonly version: number;
  readonly rendered: string | null;
  state: PlanFold;
  readonly events: PlanEvent[];
}

/**
 * Plans and their files. A fact and the file that shows it are one append. An edit of the file
 * becomes facts before the plan is read or changed.
 */
export class PlanStore {
  private readonly streams: AggregateStore<PlanFold, PlanEvent>;

  constructor(private readonly deps: PlanStoreDeps) {
    const { store, ids } = deps;
    this.streams = new AggregateStore({
      ...{ store, decider: planDecider, ...eventForms(PlanEvent, ids, 'WORKFLOW.EVENT_UNKNOWN') },
      streamOf: (_workspace, id) => planStream(id),
    });
  }

  /** Reads a plan, and records an edit of its file. Throws `PLAN.NOT_FOUND` without either. */
  read(ref: PlanRef): Promise<PlanAt> {
    return this.change(ref, READER, () => []);
  }

  /** Reads a plan with an edit of its file, and records nothing. Throws `PLAN.NOT_FOUND`. */
  async preview(ref: PlanRef): Promise<Omit<PlanAt, 'calls'>> {
    const tree = await this.deps.trees.read(ref.workspace, fileTreeIdOf(ref.workspace));
    const { state, version } = await this.streams.read(ref.workspace, this.idOf(ref));
    const draft: Draft = { version, state, rendered: state.rendered?.digest ?? null, events: [] };
    const file = tree.files.get(ref.path) ?? null;
    const isInvalid = await this.takeEdit(ref, tree, file, draft);
    if (!draft.state.created) throw noPlan(ref);
    return { state: draft.state, file, isInvalid };
  }

  /** Reads the facts alone. An edit of the file stays for the next read. */
  peek(ref: PlanRef): Promise<{ readonly state: PlanFold }> {
    return this.streams.read(ref.workspace, this.idOf(ref));
  }

  /**
   * Reads the facts and the file of a plan as of a position of the log. An edit that was no fact
   * yet stays one. Throws `PLAN.NOT_FOUND` before the first fact.
   */
  async readUpTo(ref: PlanRef, upTo: number): Promise<Omit<PlanAt, 'calls'>> {
    const { state } = await this.streams.read(ref.workspace, this.idOf(ref), upTo);
    if (!state.created) throw noPlan(ref);
    const treeId = fileTreeIdOf(ref.workspace);
    const version = await findTreeVersion(this.deps, ref.workspace, treeId, upTo);
    const file = (await this.deps.trees.read(ref.workspace, treeId, version)).files.get(ref.path) ?? null;
    const isConflicted = file !== null && file.digest === state.conflicted?.digest;
    const isInvalid = isConflicted && file.digest !== state.rendered?.digest && state.conflicts.some(isFatal);
    return { state, file, isInvalid };
  }

  idOf({ workspace, path }: PlanRef): string {
    return planIdOf(workspace, path);
  }

  treeOf(workspace: string): string {
    return fileTreeIdOf(workspace);
  }

  /** Decides and appends; decides again after a conflict. */
  change(ref: PlanRef, by: PlanActor, decide: DecidePlan, idempotency?: IdempotencyClaim): Promise<PlanAt> {
    return retryConflicts(() => this.changeOnce(ref, by, decide, idempotency), { maxRounds: MAX_ROUNDS });
  }

  /**
   * Settles conflicts by the facts, which the file then shows. An edit that the caller has not seen
   * by its digest is not lost: `FILE.STALE`.
   */
  takeFacts(ref: PlanRef, by: PlanActor, seen: string | null): Promise<PlanAt> {
    const decide: DecidePlan = () => [{ type: 'TakePlanFacts', data: {} }];
    return retryConflicts(() => this.changeOnce(ref, by, decide, undefined, seen), { maxRounds: MAX_ROUNDS });
  }

  /** Ends a run by its fact alone, without its file. */
  async endRun({ workspace, path }: PlanRef, by: PlanActor, data: EndPlanRun['data']): Promise<void> {
    const { actor, agentId } = by;
    const rest = { by: { actor, agentId }, now: isoTime(this.deps.clock) };
    await this.streams.commit(workspace, planIdOf(workspace, path), ({ state }) => ({
      events: planDecider.decide({ type: 'EndPlanRun', data, ...rest }, state),
    }));
  }

  private async changeOnce(
    ref: PlanRef,
    by: PlanActor,
    decide: DecidePlan,
    idempotency: IdempotencyClaim | undefined,
    seen?: string | null,
  ): Promise<PlanAt> {
    const treeId = fileTreeIdOf(ref.workspace);
    const draft: { state?: PlanFold; isInvalid?: boolean } = {};
    const { tree } = await this.deps.trees.commit(ref.workspace, treeId, async (before) => {
      const decided = await this.decide(ref, before, by, decide, seen);
      Object.assign(draft, decided);
      return idempotency ? { ...decided.decision, idempotency } : decided.decision;
    });
    const { state = planDecider.initialState(), isInvalid = false } = draft;
    return { state, isInvalid, file: tree.files.get(ref.path) ?? null, calls: tree.calls };
  }

  /** With `seen`, the facts win over the edit of the file with that digest. */
  private async decide(
    ref: PlanRef,
    tree: FileTree,
    by: PlanActor,
    decide: DecidePlan,
    seen: string | null | undefined,
  ) {
    const planId = planIdOf(ref.workspace, ref.path);
    const { state, version } = await this.streams.read(ref.workspace, planId);
    const draft: Draft = { version, state, rendered: state.rendered?.digest ?? null, events: [] };
    const file = tree.files.get(ref.path) ?? null;
    if (seen !== undefined && (file?.digest ?? null) !== seen) throw isStale(ref);
    const isInvalid = seen === undefined && (await this.takeEdit(ref, tree, file, draft));
    const commands = decide({ state: draft.state, file, isInvalid, calls: tree.calls });
    if (!draft.state.created && commands.every(({ type }) => type !== 'CreatePlan')) throw noPlan(ref);
    for (const command of commands) await this.apply(draft, command, by, ref.workspace);
    const isRemoved =
      !file && commands.every(({ type }) => type !== 'CreatePlan' && type !== 'MergePlanEdit');
    const events = isInvalid || isRemoved ? [] : await this.render(ref, tree, file, draft, by);
    return { state: draft.state, isInvalid, decision: this.toDecision(ref.workspace, planId, draft, events) };
  }

  /** Decides on a command. A thread decides on one with the text of a file. */
  private async apply(
    draft: Draft,
    given: Command,
    { actor, agentId }: Pick<PlanActor, 'actor' | 'agentId'>,
    owner: string,
  ): Promise<void> {
    const command = { ...given, by: { actor, agentId }, now: isoTime(this.deps.clock) } as PlanCommand;
    const decided = HAS_TEXT.has(command.type)
      ? await workJobs.run({
          ...{ name: 'decidePlan', input: [command, draft.state], owner, deadlineMs: TEXT_DEADLINE_MS },
        })
      : planDecider.decide(command, draft.state);
    draft.events.push(...decided);
    draft.state = decided.reduce(planDecider.evolve, draft.state);
  }

  /** Makes facts of an edit of the file. Returns true if the file is no plan. */
  private async takeEdit(
    ref: PlanRef,
    tree: FileTree,
    file: FileEntry | null,
    draft: Draft,
  ): Promise<boolean> {
    const { created, rendered } = draft.state;
    if (!file || file.digest === rendered?.digest) return false;
    const text = await this.textOf(ref.workspace, file);
    const author = await findAuthor(this.deps.trees, ref, tree, file, rendered?.digest ?? null);
    if (!created) {
      const place = { planId: planIdOf(ref.workspace, ref.path), treeId: fileTreeIdOf(ref.workspace) };
      const data = { ...place, path: ref.path, file: text, kind: author.kind };
      await this.apply(draft, { type: 'CreatePlan', data }, author, ref.workspace);
      return false;
    }
    const before = draft.events.length;
    const base = rendered?.document ?? documentOf(draft.state);
    const data = { file: text, digest: file.digest, base, kind: author.kind };
    const isKnown = draft.state.conflicted?.digest === file.digest;
    await this.apply(draft, { type: 'MergePlanEdit', data }, author, ref.workspace);
    const isInvalid = draft.events
      .slice(before)
      .some((event) => event.type === 'PlanEditConflicted' && event.data.conflicts.some(isFatal));
    // Recorded once: each read meets the file again.
    if (isInvalid && isKnown) draft.events.splice(before);
    return isInvalid;
  }

  private async textOf(workspace: string, { digest, size }: FileEntry): Promise<string> {
    if (size > MAX_BYTES) return '';
    return new TextDecoder().decode(await this.deps.trees.readBytes(workspace, digest));
  }

  /** Returns the change of the file that shows the facts, and records its digest with them. */
  private async render(
    { workspace, path }: PlanRef,
    tree: FileTree,
    file: FileEntry | null,
    draft: Draft,
    { actor, agentId, cause }: PlanActor,
  ): Promise<FileTreeEvent[]> {
    const input = documentOf(draft.state);
    const work = { name: 'renderPlan', input, owner: workspace } as const;
    const bytes = await workJobs.run({ ...work, deadlineMs: TEXT_DEADLINE_MS });
    const digest = sha256(bytes);
    if (digest !== draft.rendered || draft.events.some(({ type }) => type === 'PlanEditConflicted'))
      await this.apply(draft, { type: 'RenderPlanFile', data: { digest } }, { actor, agentId }, workspace);
    if (file?.digest === digest) return [];
    const { size } = await this.deps.trees.putBytes(workspace, bytes);
    const at = isoTime(this.deps.clock);
    const limits = this.deps.fileLimits(workspace);
    const write = { op: 'write', path, digest, size, expect: file?.digest ?? null } as const;
    return decideFiles(tree, [write], { at, cause: { actor, ...cause }, limits });
  }

  private toDecision(
    workspace: string,
    planId: string,
    draft: Draft,
    events: readonly FileTreeEvent[],
  ): FileDecision {
    if (draft.events.length === 0) return { events };
    return { events, also: [this.streams.appendOf(workspace, planId, draft.version, draft.events)] };
  }
}

const isFatal = ({ kind }: { readonly kind: string }): boolean => kind === 'no_steps' || kind === 'too_large';
