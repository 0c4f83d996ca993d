import type { AgentTreeEvent } from '@antiphon/contracts/agent';
import { type CheckRun, type EventPlace, type Finding, type Parsed, violation } from '../audit-check.js';
import type { AgentFact, AgentsCheck, StepStart } from '../audit-check.js';

interface Agent {
  readonly streamId: string;
  readonly parentId: string | null;
  isTerminated: boolean;
}

/** Work of a session after its agent was terminated. */
interface AfterEnd {
  /** Turns that were accepted after the end. */
  readonly turns: string[];
  /** Attempt whose model call, or whose tool calls, started after the end. */
  attempt: number | null;
}

type Admitted = Extract<AgentTreeEvent, { type: 'TreeMemberAdmitted' }>['data'];

interface Place {
  readonly data: Admitted;
  readonly at: EventPlace;
}

/** State of a run as JSON. */
interface SavedAgents {
  readonly agents: readonly (readonly [name: string, agent: Agent])[];
  readonly sessions: readonly (readonly [name: string, agentId: string])[];
  readonly afterEnd: readonly (readonly [name: string, after: AfterEnd])[];
  readonly admitted: readonly (readonly [name: string, place: Place])[];
}

const nameOf = (at: EventPlace, id: string): string => `${at.workspace} ${id}`;

class AgentsRun implements CheckRun<Parsed<AgentFact>> {
  private readonly agents: Map<string, Agent>;
  private readonly sessions: Map<string, string>;
  private readonly afterEnd: Map<string, AfterEnd>;
  /** Admissions whose `AgentSpawned` comes later in the same append. */
  private readonly admitted: Map<string, Place>;
  private checked = 0;

  constructor(past: SavedAgents | undefined) {
    // The run changes its records; the saved ones must stay unchanged.
    const saved = structuredClone(past);
    this.agents = new Map(saved?.agents);
    this.sessions = new Map(saved?.sessions);
    this.afterEnd = new Map(saved?.afterEnd);
    this.admitted = new Map(saved?.admitted);
  }

  see({ place: at, content }: Parsed<AgentFact>): Finding[] {
    switch (content.type) {
      case 'AgentSpawned':
        return this.spawn(content.data.agentId, content.data.parentId, at);
      case 'AgentTerminated':
        return this.terminate(content.data.agentId, at);
      case 'TreeMemberAdmitted':
        return this.admit(content.data, at);
      case 'SessionStarted':
        this.sessions.set(nameOf(at, at.streamId), content.data.agentId);
        return [];
      case 'TurnRequested':
        this.findEnded(at)?.turns.push(content.data.turnId);
        return [];
      case 'ModelCallStarted':
      case 'ToolCallRequested':
        return this.startStep(content, at);
      default:
        return [];
    }
  }

  end(): Finding[] {
    return [...this.admitted.values()].map(({ data, at }) =>
      violation(at, `agent ${data.agentId} has a place in a tree and was never spawned`),
    );
  }

  count(): number {
    return this.checked;
  }

  save(): SavedAgents {
    const { agents, sessions, afterEnd, admitted } = this;
    return {
      agents: [...agents],
      sessions: [...sessions],
      afterEnd: [...afterEnd],
      admitted: [...admitted],
    };
  }

  private spawn(agentId: string, parentId: string | null, at: EventPlace): Finding[] {
    this.checked++;
    const name = nameOf(at, agentId);
    const before = this.agents.get(name);
    const findings = before ? [violation(at, `the id ${agentId} was used before (${before.streamId})`)] : [];
    if (parentId !== null) findings.push(...this.checkParent(agentId, parentId, at));
    this.agents.set(name, { streamId: at.streamId, parentId, isTerminated: false });
    const place = this.admitted.get(name);
    this.admitted.delete(name);
    if (place && place.data.parentId !== parentId)
      findings.push(violation(at, `agent ${agentId} has the place of a child of ${place.data.parentId}`));
    return findings;
  }

  private checkParent(agentId: string, parentId: string, at: EventPlace): Finding[] {
    const parent = this.agents.get(nameOf(at, parentId));
    if (!parent) return [violation(at, `the parent ${parentId} of agent ${agentId} does not exist`)];
    return parent.isTerminated
      ? [violation(at, `agent ${agentId} was spawned after the end of its parent ${parentId}`)]
      : [];
  }

  private terminate(agentId: string, at: EventPlace): Finding[] {
    const agent = this.agents.get(nameOf(at, agentId));
    if (agent) agent.isTerminated = true;
    return [];
  }

  private admit(data: Admitted, at: EventPlace): Finding[] {
    this.checked++;
    const name = nameOf(at, data.agentId);
    const agent = this.agents.get(name);
    if (!agent) this.admitted.set(name, { data, at });
    return agent?.isTerminated
      ? [violation(at, `agent ${data.agentId} got a place in a tree after its end`)]
      : [];
  }

  /** Returns the work of a session after the end of its agent, or undefined while that lives. */
  private findEnded(at: EventPlace): AfterEnd | undefined {
    const name = nameOf(at, at.streamId);
    const agentId = this.sessions.get(name);
    if (agentId === undefined || !this.agents.get(nameOf(at, agentId))?.isTerminated) return undefined;
    const after = this.afterEnd.get(name) ?? { turns: [], attempt: null };
    this.afterEnd.set(name, after);
    return after;
  }

  /**
   * Allows the step that was being committed while the agent was terminated: one model call, or the
   * tool calls of one response.
   */
  private startStep({ type, data }: StepStart, at: EventPlace): Finding[] {
    const after = this.findEnded(at);
    if (!after) return [];
    const isFirst = after.attempt === null;
    const isSameStep = isFirst || (type === 'ToolCallRequested' && after.attempt === data.attempt);
    after.attempt ??= data.attempt;
    if (after.turns.includes(data.turnId))
      return [violation(at, `${type} of a turn that was accepted after the end of its agent`)];
    return isSameStep ? [] : [violation(at, `${type} of attempt ${data.attempt} after the end of its agent`)];
  }
}

/** Checks agents across event streams: spawns, places in trees, and work after an end. */
export const agentsBeginAndEndInOrder: AgentsCheck = {
  name: 'agents-begin-and-end-in-order',
  about:
    'every child has a living parent at its spawn, no id is used again, every place in a tree has its agent, and a terminated agent starts no step but the one in flight',
  counts: 'spawns and admissions',
  start: (past) => new AgentsRun(past as SavedAgents | undefined),
};
