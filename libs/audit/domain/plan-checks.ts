import type { PlanEvent } from '@antiphon/contracts/agent';
import { type CheckRun, type EventPlace, type Finding, open, type Parsed, violation } from './audit-check.js';
import type { PlanCheck } from './audit-check.js';

class PlanRun implements CheckRun<Parsed<PlanEvent>> {
  /** Steps of the plan, and whether the box of each is ticked. */
  private readonly boxes = new Map<string, boolean>();
  private readonly everAdded = new Set<string>();
  private isCreated = false;
  private run: { readonly runId: string; readonly at: EventPlace } | null = null;
  private plans = 0;

  see({ place: at, content }: Parsed<PlanEvent>): Finding[] {
    const { type, data } = content;
    const foreign =
      at.streamId === `plan-${data.planId}` ? [] : [violation(at, `${type} names plan ${data.planId}`)];
    if (type === 'PlanCreated') return [...foreign, ...this.create(content, at)];
    if (!this.isCreated) return [...foreign, violation(at, `${type} of a plan that was not created`)];
    return [...foreign, ...this.change(content, at)];
  }

  end(): Finding[] {
    return this.run ? [open(this.run.at, `run ${this.run.runId} has not ended`)] : [];
  }

  count(): number {
    return this.plans;
  }

  private create({ data }: Extract<PlanEvent, { type: 'PlanCreated' }>, at: EventPlace): Finding[] {
    if (this.isCreated) return [violation(at, 'the plan was created twice')];
    this.isCreated = true;
    this.plans++;
    return data.steps.flatMap(({ stepId }) => this.addStep(stepId, at));
  }

  private addStep(stepId: string, at: EventPlace): Finding[] {
    if (this.everAdded.has(stepId)) return [violation(at, `step ${stepId} was added twice`)];
    this.everAdded.add(stepId);
    this.boxes.set(stepId, false);
    return [];
  }

  private change(event: PlanEvent, at: EventPlace): Finding[] {
    switch (event.type) {
      case 'PlanStepAdded':
        return this.addStep(event.data.stepId, at);
      case 'PlanStepRemoved': {
        const isKnown = this.boxes.delete(event.data.stepId);
        return isKnown ? [] : [violation(at, `step ${event.data.stepId} is not in the plan`)];
      }
      case 'PlanStepStarted':
      case 'PlanStepCompleted':
      case 'PlanStepFailed':
      case 'PlanStepReopened':
        return this.setBox(event.data.stepId, event.type, at);
      case 'PlanFileRendered':
        return this.compare(event.data, at);
      case 'PlanRunStarted':
      case 'PlanRunEnded':
        return this.moveRun(event, at);
      default:
        return [];
    }
  }

  private setBox(stepId: string, type: PlanEvent['type'], at: EventPlace): Finding[] {
    const isTicked = this.boxes.get(stepId);
    if (isTicked === undefined) return [violation(at, `${type} of step ${stepId}, which is not in the plan`)];
    this.boxes.set(stepId, type === 'PlanStepCompleted');
    return isTicked && type !== 'PlanStepReopened'
      ? [violation(at, `${type} of step ${stepId}, which was done`)]
      : [];
  }

  private compare({ done, steps }: { done: number; steps: number }, at: EventPlace): Finding[] {
    const ticked = [...this.boxes.values()].filter(Boolean).length;
    return done === ticked && steps === this.boxes.size
      ? []
      : [
          violation(
            at,
            `the file has ${done} of ${steps} boxes ticked; the facts ${ticked} of ${this.boxes.size}`,
          ),
        ];
  }

  private moveRun(
    { type, data }: Extract<PlanEvent, { type: 'PlanRunStarted' | 'PlanRunEnded' }>,
    at: EventPlace,
  ): Finding[] {
    const { run } = this;
    const { runId } = data;
    if (type === 'PlanRunStarted') {
      this.run = { runId, at };
      return run ? [violation(at, `run ${runId} began before the end of ${run.runId}`)] : [];
    }
    this.run = null;
    return run?.runId === runId ? [] : [violation(at, `run ${runId} ended without a start`)];
  }
}

/** Checks plans and what their files show, for each `plan-` stream. */
export const plansEqualTheirFiles: PlanCheck = {
  name: 'plans-equal-their-files',
  about: 'the file of every plan has the boxes of its facts, no step is done twice, and runs end once',
  counts: 'plans',
  start: () => new PlanRun(),
};
