import { withMessage } from '@antiphon/contracts/causes';
import {
  foldActivity,
  initialActivity,
  isTurnEnd,
  speak,
  speechOf,
  stateOf,
  TURN_END_STATUS,
} from '@antiphon/contracts/agent';
import type {
  ActivityFact,
  AgentActivity,
  PlanConflict,
  SpeechNotification,
} from '@antiphon/contracts/agent';
import type { AgentFrame, AgentStateFrame, AgentStateView } from '@antiphon/contracts/gateway';
import { OpenCalls, type OpenCall } from './open-calls.js';
import type { TailEvent } from './workspace-tail.js';

type Data = Readonly<Record<string, unknown>>;

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);
const dataOf = ({ event }: TailEvent): Data => withMessage(event.data as Data);

/** Returns the part of an event that the state of its agent depends on. */
const factOf = (event: TailEvent): ActivityFact => {
  const data = dataOf(event);
  const turnId = event.event.category === 'session' ? textOf(data['turnId']) : null;
  return { type: event.event.type, turnId, speech: speechOf(data), approvalId: textOf(data['approvalId']) };
};

/** Returns the fields that all frames about an event have. */
export const aboutOf = (agentId: string, event: TailEvent) => {
  const { category, streamId, eventId, position, recordedAt } = event.event;
  const data = dataOf(event);
  return {
    agentId,
    sessionId: category === 'session' ? streamId.slice('session-'.length) : textOf(data['sessionId']),
    turnId: textOf(data['turnId']),
    eventId,
    eventPosition: position,
    at: recordedAt,
  };
};

interface Progress {
  readonly kind: 'turn' | 'step' | 'tool' | 'task';
  readonly status: string;
}

const PROGRESS: Readonly<Record<string, Progress>> = {
  TurnRequested: { kind: 'turn', status: 'queued' },
  ModelCallStarted: { kind: 'step', status: 'started' },
  ModelCallCompleted: { kind: 'step', status: 'completed' },
  ModelCallAborted: { kind: 'step', status: 'failed' },
  ToolCallRequested: { kind: 'tool', status: 'started' },
  ToolCallCompleted: { kind: 'tool', status: 'completed' },
  ToolCallFailed: { kind: 'tool', status: 'failed' },
  ToolCallUnknown: { kind: 'tool', status: 'failed' },
  TaskQueued: { kind: 'task', status: 'queued' },
  TaskAssigned: { kind: 'task', status: 'assigned' },
  TaskBegun: { kind: 'task', status: 'started' },
  TaskRequeued: { kind: 'task', status: 'queued' },
};

type PlanFrame = Extract<AgentFrame, { type: 'agent.plan' }>;

const PLAN_CHANGES: Readonly<Record<string, PlanFrame['change']>> = {
  PlanCreated: 'created',
  PlanStepAdded: 'step_added',
  PlanStepRemoved: 'step_removed',
  PlanStepReworded: 'step_reworded',
  PlanStepsReordered: 'reordered',
  PlanStepStarted: 'step_started',
  PlanStepCompleted: 'step_completed',
  PlanStepFailed: 'step_failed',
  PlanStepReopened: 'step_reopened',
  PlanEditConflicted: 'conflict',
  PlanFileRendered: 'file_written',
  PlanRunStarted: 'run_started',
  PlanRunEnded: 'run_ended',
};

const planFrame = (agentId: string, event: TailEvent): AgentFrame | undefined => {
  const { category, type } = event.event;
  const change = Object.hasOwn(PLAN_CHANGES, type) ? PLAN_CHANGES[type] : undefined;
  if (category !== 'plan' || !change) return undefined;
  const data = dataOf(event);
  const { steps, done, conflicts } = data;
  return {
    type: 'agent.plan',
    ...aboutOf(agentId, event),
    planId: textOf(data['planId']) ?? '',
    path: textOf(data['path']) ?? '',
    change,
    stepId: textOf(data['stepId']),
    text: textOf(data['text']) ?? textOf(data['message']) ?? textOf(data['note']),
    ...(Array.isArray(steps) ? { steps: steps.map(stepOf) } : {}),
    ...(typeof done === 'number' && typeof steps === 'number' ? { done, total: steps } : {}),
    ...(Array.isArray(conflicts) ? { conflicts: conflicts as PlanConflict[] } : {}),
  };
};

const stepOf = (step: unknown): { stepId: string; text: string } => {
  const { stepId, text } = step as { stepId?: unknown; text?: unknown };
  return { stepId: textOf(stepId) ?? '', text: textOf(text) ?? '' };
};

const progressOf = (type: string, data: Data): Progress | undefined => {
  if (isTurnEnd(type)) return { kind: 'turn', status: TURN_END_STATUS[type] };
  if (type === 'TaskEnded') return { kind: 'task', status: textOf(data['status']) ?? 'completed' };
  return Object.hasOwn(PROGRESS, type) ? PROGRESS[type] : undefined;
};

const progressFrame = (agentId: string, event: TailEvent): AgentFrame | undefined => {
  const data = dataOf(event);
  const progress = progressOf(event.event.type, data);
  return (
    progress && {
      type: 'agent.progress',
      ...aboutOf(agentId, event),
      ...progress,
      step: typeof data['step'] === 'number' ? data['step'] : null,
      tool: textOf(data['name']),
      callId: textOf(data['callId']),
      taskId: textOf(data['taskId']),
    }
  );
};

const blockedFrame = (agentId: string, event: TailEvent): AgentFrame | undefined => {
  const data = dataOf(event);
  const about = aboutOf(agentId, event);
  const type = 'agent.blocked';
  if (event.event.type === 'ApprovalRequested') {
    const tool = textOf(data['name']);
    const message = `the call of ${tool ?? 'a tool'} waits for an approval`;
    const approvalId = textOf(data['approvalId']);
    return { type, ...about, code: 'APPROVAL.PENDING', message, approvalId, tool, chain: [] };
  }
  if (event.event.type !== 'AgentBlocked') return undefined;
  const chain = Array.isArray(data['chain']) ? data['chain'].map(String) : [];
  const code = textOf(data['code']) ?? 'AGENT.BLOCKED';
  return { type, ...about, code, message: textOf(data['reason']), approvalId: null, tool: null, chain };
};

/** Cause of a change of state. */
type Cause = Pick<AgentStateFrame, 'actor' | 'reason' | 'at'> & {
  readonly event: Pick<OpenCall, 'eventId' | 'position'>;
};

/** An event of a turn, of which the state of its agent depends on these parts. */
export interface TurnFact {
  readonly type: string;
  readonly eventId: string;
  readonly position: number;
  readonly data: Data;
}

/** Derives the states of a workspace's agents, and the frames about them, from its events. */
export class AgentFold {
  readonly #agents = new Map<string, AgentActivity>();
  readonly #calls = new OpenCalls();

  /** Applies a fact of the past, which makes no frames. */
  apply(agentId: string, fact: ActivityFact): void {
    this.#agents.set(agentId, foldActivity(this.#activityOf(agentId), fact));
  }

  /** Applies an event of a turn in the past, which makes no frames. */
  applyTurn(agentId: string, fact: TurnFact): void {
    this.apply(agentId, {
      type: fact.type,
      turnId: textOf(fact.data['turnId']),
      speech: speechOf(fact.data),
      approvalId: textOf(fact.data['approvalId']),
    });
    this.#followCall(fact);
  }

  /** Returns the state of an agent. */
  view(agentId: string): AgentStateView {
    return { agentId, ...stateOf(this.#activityOf(agentId)) };
  }

  /** Returns the states of all agents that have facts and are not terminated. */
  living(): AgentStateView[] {
    return [...this.#agents.keys()].map((id) => this.view(id)).filter(({ state }) => state !== 'terminated');
  }

  /** Applies an event, and returns its frames. A change of state is an `agent_broadcast_state`. */
  advance(event: TailEvent): AgentFrame[] {
    const { category, type, eventId, data } = event.event;
    const frames = [...event.agents].flatMap((agentId) => [
      progressFrame(agentId, event),
      blockedFrame(agentId, event),
      planFrame(agentId, event),
      this.#change(agentId, event),
    ]);
    const fact = { type, eventId, position: event.position, data: data as Data };
    const early = category === 'session' ? this.#followCall(fact) : undefined;
    return [...frames.filter((frame) => frame !== undefined), ...(early ? this.hear(early) : [])];
  }

  /**
   * Applies a notification of the first text of an answer. The frame has the event of the call,
   * because the answer has no event yet.
   */
  hear(speech: SpeechNotification): AgentStateFrame[] {
    const { agentId, turnId, at } = speech;
    const call = this.#calls.find(speech);
    const before = this.view(agentId);
    if (!call) return [];
    this.#agents.set(agentId, speak(this.#activityOf(agentId), turnId));
    const frame = this.#frameOf(before, { actor: 'runtime', reason: null, at, event: call });
    return frame ? [frame] : [];
  }

  /** Records the start or the end of a call. Returns a notification that has waited for its start. */
  #followCall({ type, eventId, position, data }: TurnFact): SpeechNotification | undefined {
    const [turnId, attempt] = [textOf(data['turnId']), data['attempt']];
    if (turnId === null) return undefined;
    if (type === 'ModelCallStarted' && typeof attempt === 'number')
      return this.#calls.begin(turnId, { attempt, eventId, position });
    if (type === 'ModelCallCompleted' || type === 'ModelCallAborted' || isTurnEnd(type))
      this.#calls.end(turnId);
    return undefined;
  }

  #activityOf(agentId: string): AgentActivity {
    return this.#agents.get(agentId) ?? initialActivity;
  }

  #change(agentId: string, event: TailEvent): AgentFrame | undefined {
    const { type, eventId, position, recordedAt: at } = event.event;
    const before = this.view(agentId);
    this.apply(agentId, factOf(event));
    const data = dataOf(event);
    const cause = { actor: textOf(data['actor']) ?? 'runtime', reason: textOf(data['reason']), at };
    return this.#frameOf(before, { ...cause, event: { eventId, position } }, type === 'AgentSpawned');
  }

  /** Returns the frame of a change since `before`; undefined if the agent is as it was. */
  #frameOf(
    { agentId, state: from, phase: previous }: AgentStateView,
    { event, ...cause }: Cause,
    isNew = false,
  ): AgentStateFrame | undefined {
    const { state: to, phase } = this.view(agentId);
    if (!isNew && from === to && previous === phase) return undefined;
    const { eventId, position: eventPosition } = event;
    const type = 'agent_broadcast_state';
    return { type, agentId, from: isNew ? null : from, to, phase, ...cause, eventId, eventPosition };
  }
}
