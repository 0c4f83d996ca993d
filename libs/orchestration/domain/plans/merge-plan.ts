import type { PlanConflict, PlanEvent, PlanEvidence } from '@antiphon/contracts/agent';
import { MAX_READ_STEPS, PLAN_LIMITS, parsePlan, renderPlan } from './plan-file.js';
import type { ParsedStep, PlanDocument } from './plan-file.js';
import { documentOf, evolvePlan } from './plan-fold.js';
import type { PlanFold, PlanStep } from './plan-fold.js';

const schemaVersion = 1;

/** Author of an edit. Only a person's tick completes a step. */
export interface PlanAuthor {
  readonly kind: 'person' | 'agent';
  /** `agent/<id>`, or the caller. */
  readonly actor: string;
  readonly agentId: string | null;
}

export interface PlanEdit {
  /** Text and SHA-256 (hex) of the edited file. */
  readonly file: string;
  readonly digest: string;
  /** The plan as the author saw it. */
  readonly base: PlanDocument;
  readonly author: PlanAuthor;
  /** ISO 8601, UTC. */
  readonly now: string;
}

const clip = (text: string): string => text.slice(0, 2_000);
const boxOf = (isDone: boolean, text: string): string => clip(`[${isDone ? 'x' : ' '}] ${text}`);
const whole = ({ text, body }: { readonly text: string; readonly body: string }): string =>
  body === '' ? text : `${text}\n${body}`;

/** Returns the document as a reader of its file sees it. */
const seen = (document: PlanDocument): PlanDocument<ParsedStep> => parsePlan(renderPlan(document));

const placeOf = ({ created }: PlanFold) => ({ planId: created?.planId ?? '', path: created?.path ?? '' });

type Ids = readonly string[];
/** Returns the ids of a list that the other one has, too, in their order. */
const common = (list: Ids, other: Ids): Ids => list.filter((id) => other.includes(id));
const isEqualOrder = (a: Ids, b: Ids): boolean => a.length === b.length && a.every((id, at) => id === b[at]);

interface Sides {
  readonly base: ParsedStep | undefined;
  readonly ours: ParsedStep;
  readonly theirs: ParsedStep;
}

/** Merges one edit into the facts of a plan: three-way, by the ids of steps. */
class Merge {
  readonly events: PlanEvent[] = [];
  readonly conflicts: PlanConflict[] = [];
  private state: PlanFold;
  private readonly ours: PlanDocument<ParsedStep>;
  private readonly base: PlanDocument<ParsedStep>;

  constructor(
    private readonly before: PlanFold,
    private readonly edit: PlanEdit,
    private readonly theirs: readonly ParsedStep[],
  ) {
    this.state = before;
    this.ours = seen(documentOf(before));
    this.base = seen(edit.base);
  }

  run(head: Pick<PlanDocument, 'head' | 'eol'>): void {
    this.mergeHead(head);
    for (const step of this.ours.steps) this.mergeStep(step);
    const order = this.addSteps();
    this.mergeOrder(order);
  }

  size(): number {
    return this.state.steps.length;
  }

  private get change() {
    const { actor, agentId } = this.edit.author;
    return { ...placeOf(this.before), actor, agentId, at: this.edit.now };
  }

  private add(event: PlanEvent): void {
    this.events.push(event);
    this.state = evolvePlan(this.state, event);
  }

  private refuse(kind: PlanConflict['kind'], stepId: string | null, ours: string, theirs: string): void {
    this.conflicts.push({ kind, stepId, ours: clip(ours), theirs: clip(theirs) });
  }

  private factOf(stepId: string): PlanStep | undefined {
    return this.state.steps.find((step) => step.stepId === stepId);
  }

  private mergeHead({ head, eol }: Pick<PlanDocument, 'head' | 'eol'>): void {
    const { ours, base } = this;
    const isEdited = head !== base.head || eol !== base.eol;
    if (!isEdited || (head === ours.head && eol === ours.eol)) return;
    if (ours.head !== base.head) return this.refuse('head_changed', null, ours.head, head);
    this.add({ type: 'PlanHeadChanged', schemaVersion, data: { ...this.change, head, eol } });
  }

  private mergeStep(ours: ParsedStep): void {
    const id = ours.stepId ?? '';
    const base = this.base.steps.find(({ stepId }) => stepId === id);
    const theirs = this.theirs.find(({ stepId }) => stepId === id);
    if (!theirs) {
      // A step that the author did not see is not removed.
      if (base) this.mergeRemoval(id, base, ours);
      return;
    }
    this.mergeText(id, { base, ours, theirs });
    this.mergeTick(id, { base, ours, theirs });
  }

  private mergeRemoval(stepId: string, base: ParsedStep, ours: ParsedStep): void {
    const isSame = whole(base) === whole(ours) && base.isDone === ours.isDone;
    const isRunning = this.factOf(stepId)?.status === 'started';
    if (!isSame || isRunning) return this.refuse('step_removed', stepId, boxOf(ours.isDone, ours.text), '');
    this.add({ type: 'PlanStepRemoved', schemaVersion, data: { ...this.change, stepId } });
  }

  private mergeText(stepId: string, { base, ours, theirs }: Sides): void {
    if (whole(theirs) === whole(ours) || (base && whole(theirs) === whole(base))) return;
    const isClaimed = ours.isDone && this.edit.author.kind === 'agent';
    if (!base || whole(base) !== whole(ours) || isClaimed)
      return this.refuse('step_changed', stepId, whole(ours), whole(theirs));
    const { text, body } = theirs;
    const data = { ...this.change, stepId, text, body };
    this.add({ type: 'PlanStepReworded', schemaVersion, data });
  }

  private mergeTick(stepId: string, { base, ours, theirs }: Sides): void {
    if (theirs.isDone === ours.isDone || theirs.isDone === base?.isDone) return;
    const texts = [boxOf(ours.isDone, ours.text), boxOf(theirs.isDone, theirs.text)] as const;
    if (this.edit.author.kind === 'agent') return this.refuse('tick_without_evidence', stepId, ...texts);
    if (theirs.isDone) return this.complete(stepId);
    if (!base) return this.refuse('untick_of_newer', stepId, ...texts);
    this.add({ type: 'PlanStepReopened', schemaVersion, data: { ...this.change, stepId } });
  }

  private complete(stepId: string): void {
    const evidence: PlanEvidence = { kind: 'person', caller: this.edit.author.actor };
    const data = { ...this.change, stepId, evidence, note: null };
    this.add({ type: 'PlanStepCompleted', schemaVersion, data });
  }

  /** Adds the steps without a known id. Returns the ids of all steps in the order of the file. */
  private addSteps(): Ids {
    const order: string[] = [];
    const known = new Set(this.ours.steps.map(({ stepId }) => stepId));
    for (const { stepId, text, body, isDone } of this.theirs) {
      if (stepId !== null && known.has(stepId)) {
        if (this.factOf(stepId)) order.push(stepId);
        continue;
      }
      const id = `s${this.state.added + 1}`;
      const data = { ...this.change, stepId: id, text, body, after: order.at(-1) ?? null };
      this.add({ type: 'PlanStepAdded', schemaVersion, data });
      order.push(id);
      if (!isDone) continue;
      if (this.edit.author.kind === 'person') this.complete(id);
      else this.refuse('tick_without_evidence', id, boxOf(false, text), boxOf(true, text));
    }
    return order;
  }

  private mergeOrder(order: Ids): void {
    const now = this.state.steps.map(({ stepId }) => stepId);
    // Steps that the file does not have keep the place after their predecessor.
    const wanted = now.reduce<string[]>(
      (list, id, at) =>
        order.includes(id) ? list : list.toSpliced(list.indexOf(now[at - 1] ?? '') + 1, 0, id),
      [...order],
    );
    if (isEqualOrder(wanted, now)) return;
    const ids = (document: PlanDocument<ParsedStep>): Ids => document.steps.map(({ stepId }) => stepId ?? '');
    const [base, ours, theirs] = [ids(this.base), ids(this.ours), order];
    const shared = common(common(base, ours), theirs);
    const isEdited = !isEqualOrder(common(theirs, shared), common(base, shared));
    const isOursChanged = !isEqualOrder(common(ours, shared), common(base, shared));
    if (!isEdited && isOursChanged) return;
    if (isOursChanged && !isEqualOrder(common(ours, shared), common(theirs, shared)))
      return this.refuse('order_changed', null, ours.join(' '), theirs.join(' '));
    this.add({ type: 'PlanStepsReordered', schemaVersion, data: { ...this.change, order: wanted } });
  }
}

/** A second line with the id of an earlier one is a new step. */
const withoutRepeatedIds = (steps: readonly ParsedStep[]): ParsedStep[] => {
  const used = new Set<string>();
  return steps.map((step) => {
    if (step.stepId === null || !used.has(step.stepId)) {
      if (step.stepId !== null) used.add(step.stepId);
      return step;
    }
    return { ...step, stepId: null };
  });
};

/** Returns why a file is no plan; null if it is one. */
export const invalidPlan = ({ head, steps }: PlanDocument<ParsedStep>): 'no_steps' | 'too_large' | null => {
  if (steps.length === 0) return 'no_steps';
  const isLarge =
    steps.length > PLAN_LIMITS.steps ||
    head.length > PLAN_LIMITS.body ||
    steps.some(({ text, body }) => text.length > PLAN_LIMITS.text || body.length > PLAN_LIMITS.body);
  return isLarge ? 'too_large' : null;
};

/** Result of a merge: the facts of the edit. `isInvalid` is true for a file that is no plan. */
export interface MergedPlan {
  readonly events: readonly PlanEvent[];
  readonly conflicts: readonly PlanConflict[];
  readonly isInvalid: boolean;
}

/**
 * Merges an edit of a plan's file into its facts. Each difference between the base and the file is
 * an event or a conflict. A conflict leaves the facts as they are; the last event shows all.
 */
export const mergePlan = (state: PlanFold, edit: PlanEdit): MergedPlan => {
  const parsed = parsePlan(edit.file);
  const invalid = invalidPlan(parsed);
  const { actor, agentId } = edit.author;
  const change = { ...placeOf(state), actor, agentId, at: edit.now };
  const conflicted = (conflicts: readonly PlanConflict[]): PlanEvent[] =>
    conflicts.length === 0
      ? []
      : [
          {
            type: 'PlanEditConflicted',
            schemaVersion,
            data: { ...change, digest: edit.digest, conflicts: conflicts.slice(0, 500) },
          },
        ];
  if (invalid) {
    const conflict = { kind: invalid, stepId: null, ours: `${state.steps.length} steps`, theirs: '' };
    const isCut = parsed.steps.length > MAX_READ_STEPS;
    const theirs = isCut ? `over ${MAX_READ_STEPS} steps` : `${parsed.steps.length} steps`;
    const conflicts = [{ ...conflict, theirs }];
    return { events: conflicted(conflicts), conflicts, isInvalid: true };
  }
  const merge = new Merge(state, edit, withoutRepeatedIds(parsed.steps));
  merge.run(parsed);
  if (merge.size() > PLAN_LIMITS.steps) {
    const theirs = `${merge.size()} steps with this edit`;
    const conflict = {
      kind: 'too_large',
      stepId: null,
      ours: `${state.steps.length} steps`,
      theirs,
    } as const;
    return { events: conflicted([conflict]), conflicts: [conflict], isInvalid: true };
  }
  return {
    events: [...merge.events, ...conflicted(merge.conflicts)],
    conflicts: merge.conflicts,
    isInvalid: false,
  };
};
