import type { AgentEvent, AgentTreeEvent } from '@antiphon/contracts/agent';
import { type CheckRun, type EventPlace, type Finding, type Parsed, violation } from '../audit-check.js';
import type { LifecycleCheck, TreeCheck } from '../audit-check.js';

type Status = 'none' | 'spawning' | 'ready' | 'paused' | 'error' | 'terminated';

const LIVING: readonly Status[] = ['spawning', 'ready', 'paused', 'error'];
/** States before each event of an agent, and the state after it (null: unchanged). */
const MOVES: Readonly<Record<AgentEvent['type'], readonly [from: readonly Status[], to: Status | null]>> = {
  AgentSpawned: [['none'], 'spawning'],
  AgentReady: [['spawning'], 'ready'],
  AgentRedefined: [LIVING, null],
  AgentOverridesSet: [LIVING, null],
  AgentPaused: [['ready'], 'paused'],
  AgentResumed: [['paused', 'error'], 'ready'],
  // In `error` it is the failure of a trial.
  AgentFailed: [['spawning', 'ready', 'paused', 'error'], 'error'],
  AgentTrialStarted: [['error'], null],
  AgentUnresponsive: [['ready', 'paused'], null],
  AgentResponsive: [['ready', 'paused'], null],
  AgentBlocked: [LIVING, null],
  AgentTerminated: [LIVING, 'terminated'],
};

class LifecycleRun implements CheckRun<Parsed<AgentEvent>> {
  private status: Status = 'none';
  private agentId: string | null = null;
  private isUnresponsive = false;
  private agents = 0;

  see({ place: at, content: { type, data } }: Parsed<AgentEvent>): Finding[] {
    const findings = this.checkId(data.agentId, at);
    const [from, to] = MOVES[type];
    if (!from.includes(this.status))
      findings.push(violation(at, `${type} of agent ${data.agentId}, which was ${this.status}`));
    if (type === 'AgentSpawned') this.agents++;
    this.status = to ?? this.status;
    return [...findings, ...this.checkHeartbeat(type, at)];
  }

  end(): Finding[] {
    return [];
  }

  count(): number {
    return this.agents;
  }

  private checkId(agentId: string, at: EventPlace): Finding[] {
    this.agentId ??= agentId;
    return this.agentId === agentId
      ? []
      : [violation(at, `the events of agent ${this.agentId} name agent ${agentId}`)];
  }

  private checkHeartbeat(type: AgentEvent['type'], at: EventPlace): Finding[] {
    // A resume begins the watch of heartbeats again.
    if (type === 'AgentResumed') this.isUnresponsive = false;
    const isChange = type === 'AgentUnresponsive' || type === 'AgentResponsive';
    if (!isChange) return [];
    const before = this.isUnresponsive;
    this.isUnresponsive = type === 'AgentUnresponsive';
    return before === this.isUnresponsive ? [violation(at, `${type} came twice in a row`)] : [];
  }
}

/** Checks each `agent-<id>` stream: one spawn, legal changes of state, nothing after the end. */
export const agentsFollowTheirLifecycle: LifecycleCheck = {
  name: 'agents-follow-their-lifecycle',
  about:
    'every agent is spawned once, changes its state only as the table of states allows, and nothing follows its end',
  counts: 'agents',
  start: () => new LifecycleRun(),
};

interface Member {
  readonly parentId: string | null;
  readonly depth: number;
  isLiving: boolean;
}
type MemberEvent = Extract<AgentTreeEvent, { type: 'TreeMemberAdmitted' | 'TreeMemberQueued' }>;

class TreeRun implements CheckRun<Parsed<AgentTreeEvent>> {
  private opened: Extract<AgentTreeEvent, { type: 'TreeOpened' }>['data'] | null = null;
  private readonly members = new Map<string, Member>();
  private readonly left = new Set<string>();
  private admissions = 0;

  see({ place: at, content }: Parsed<AgentTreeEvent>): Finding[] {
    if (content.type === 'TreeOpened') {
      const findings = this.opened ? [violation(at, 'the tree was opened twice')] : [];
      this.opened = content.data;
      return findings;
    }
    if (!this.opened) return [violation(at, `${content.type} came before TreeOpened`)];
    if (content.data.rootId !== this.opened.rootId)
      return [violation(at, `${content.type} names the tree of ${content.data.rootId}`)];
    if (content.type === 'TreeMemberLeft') return this.leave(content.data.agentId, at);
    return content.type === 'TreeMemberAdmitted' ? this.admit(content, at) : this.queue(content, at);
  }

  end(): Finding[] {
    return [];
  }

  count(): number {
    return this.admissions;
  }

  private admit({ data }: MemberEvent, at: EventPlace): Finding[] {
    this.admissions++;
    const before = this.members.get(data.agentId);
    const isAgain = before?.isLiving === true || this.left.has(data.agentId);
    const again = isAgain ? [violation(at, `agent ${data.agentId} was admitted a second time`)] : [];
    this.members.set(data.agentId, { parentId: data.parentId, depth: data.depth, isLiving: true });
    return [...again, ...this.checkPlace(data, at), ...this.checkLimits(data, at)];
  }

  private queue({ data }: MemberEvent, at: EventPlace): Finding[] {
    const isAgain = this.members.has(data.agentId) || this.left.has(data.agentId);
    this.members.set(data.agentId, { parentId: data.parentId, depth: data.depth, isLiving: false });
    return isAgain ? [violation(at, `agent ${data.agentId} was queued a second time`)] : [];
  }

  private leave(agentId: string, at: EventPlace): Finding[] {
    this.left.add(agentId);
    return this.members.delete(agentId)
      ? []
      : [violation(at, `agent ${agentId} left the tree without a place in it`)];
  }

  private checkPlace({ agentId, parentId, depth }: MemberEvent['data'], at: EventPlace): Finding[] {
    if (parentId === null)
      return agentId === this.opened?.rootId && depth === 0
        ? []
        : [violation(at, `agent ${agentId} has no parent, and is not the root`)];
    const parent = this.members.get(parentId);
    if (!parent?.isLiving) return [violation(at, `the parent ${parentId} of ${agentId} has no place`)];
    return depth === parent.depth + 1
      ? []
      : [violation(at, `agent ${agentId} has depth ${depth}, its parent ${parent.depth}`)];
  }

  private checkLimits({ parentId, depth }: MemberEvent['data'], at: EventPlace): Finding[] {
    const { limits } = this.opened as NonNullable<typeof this.opened>;
    const living = [...this.members.values()].filter(({ isLiving }) => isLiving);
    const children = living.filter((member) => parentId !== null && member.parentId === parentId).length;
    const reached: readonly (readonly [string, number, number])[] = [
      ['size', living.length, limits.size],
      ['children', children, limits.children],
      ['depth', depth, limits.depth],
    ];
    return reached
      .filter(([, count, limit]) => count > limit)
      .map(([name, count, limit]) => violation(at, `the tree has ${name} ${count}, of ${limit} allowed`));
  }
}

/** Checks each `agent-tree-<id>` stream against its limits at every position. */
export const treesStayWithinLimits: TreeCheck = {
  name: 'trees-stay-within-limits',
  about: 'no tree of agents ever exceeded its depth, children or size, and every member left it at most once',
  counts: 'admissions to trees',
  start: () => new TreeRun(),
};
