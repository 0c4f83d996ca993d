import type {
  AGENT_FRAME_KINDS,
  AgentFrame,
  AgentStateFrame,
  AgentStateView,
} from '@antiphon/contracts/gateway';
import type { SpeechNotification } from '@antiphon/contracts/agent';
import type { AgentFold } from './agent-frames.js';
import { loadAgents } from './load-agents.js';
import type { FindOpenSessions } from './load-agents.js';
import type { LogTail } from './log-tail.js';
import { canChangeMemory, MemoryReads, type MemoryFrames } from './memory-frames.js';
import type { MetricsFrames } from './metrics-frames.js';
import type { TailEvent, WorkspaceTail } from './workspace-tail.js';

type FrameKind = (typeof AGENT_FRAME_KINDS)[number];

export interface AgentSubscriber {
  /** Agent whose frames it gets; undefined for all agents. */
  readonly agent: string | undefined;
  readonly kinds: ReadonlySet<FrameKind>;
  /** Called once, before the first frame. */
  readonly onSnapshot: (snapshot: AgentSnapshot) => void;
  readonly send: (frame: AgentFrame) => void;
  /** Returns a promise while the client has no room, else undefined. */
  readonly waitForRoom: () => Promise<void> | undefined;
  /** Called when the frames end: the log was restored. */
  readonly onEnd: (error: unknown) => void;
}

const kindOf = ({ type }: AgentFrame): FrameKind => {
  if (type === 'agent.progress') return 'progress';
  if (type === 'agent.plan') return 'plan';
  if (type === 'memory.event') return 'memory';
  if (type === 'agent.metrics') return 'metrics';
  return type === 'agent.blocked' ? 'blocked' : 'state';
};

const isState = (frame: AgentFrame): frame is AgentStateFrame =>
  frame.type === 'agent_broadcast_state' || (frame.type as string) === 'agent_state_update';

/**
 * Sends frames to one subscriber. While its client has no room, the newest state of each agent
 * waits. Its progress and the changes of memory are left out. So these frames never fill the
 * client's buffer.
 */
class Delivery {
  readonly #subscriber: AgentSubscriber;
  readonly #held = new Map<string, AgentFrame>();
  #isWaiting = false;

  constructor(subscriber: AgentSubscriber) {
    this.#subscriber = subscriber;
  }

  wants(agentId: string, kind: FrameKind): boolean {
    const { agent, kinds } = this.#subscriber;
    return (agent === undefined || agent === agentId) && kinds.has(kind);
  }

  push(frame: AgentFrame): void {
    if (!this.wants(frame.agentId, kindOf(frame))) return;
    const { waitForRoom } = this.#subscriber;
    const room = this.#isWaiting ? undefined : waitForRoom();
    if (room) void this.#wait(room);
    if (!this.#isWaiting) this.#send(frame);
    else if (!UNHELD_KINDS.has(kindOf(frame))) this.#hold(frame);
  }

  #hold(frame: AgentFrame): void {
    const plan = frame.type === 'agent.plan' ? `/${frame.planId}` : '';
    const key = `${kindOf(frame)}/${frame.agentId}${plan}`;
    const before = this.#held.get(key);
    // One frame for several changes: from the state that the client knows.
    const merged = before && isState(before) && isState(frame) ? { ...frame, from: before.from } : frame;
    this.#held.set(key, merged);
  }

  async #wait(room: Promise<void>): Promise<void> {
    this.#isWaiting = true;
    await room;
    this.#isWaiting = false;
    const held = [...this.#held.values()];
    this.#held.clear();
    for (const frame of held) this.push(frame);
  }

  #send(frame: AgentFrame): void {
    const { agent, send } = this.#subscriber;
    send(isState(frame) && agent !== undefined ? { ...frame, type: 'agent_state_update' } : frame);
  }
}

/** Frames that are left out while a client has no room. */
const UNHELD_KINDS: ReadonlySet<FrameKind> = new Set(['progress', 'memory']);

interface Group {
  readonly tail: WorkspaceTail;
  readonly fold: AgentFold;
  readonly end: () => void;
  readonly deliveries: Map<AgentSubscriber, Delivery>;
  at: number;
  isClosed: boolean;
  readonly memoryReads: MemoryReads;
}

const push = ({ deliveries }: Group, frames: readonly AgentFrame[]): void => {
  for (const frame of frames) for (const delivery of deliveries.values()) delivery.push(frame);
};

export interface AgentSnapshot {
  readonly agents: AgentStateView[];
  readonly cursor: string;
}

/** Maximum number of agents in a snapshot. */
const MAX_AGENTS = 1_000;

/** Calls back for each notification of a speech in a workspace. Returns the function that ends it. */
export type OnSpeech = (workspace: string, hear: (speech: SpeechNotification) => void) => () => void;

export interface AgentStreamsDeps {
  readonly log: LogTail;
  readonly findOpenSessions: FindOpenSessions;
  readonly onSpeech: OnSpeech;
  /** Null sends no frames of memory: the feature is off. */
  readonly memory: MemoryFrames | null;
  /** Null sends no samples. */
  readonly metrics: Pick<MetricsFrames, 'follow'> | null;
}

/**
 * Sends frames about agents to subscribers. The agents of a workspace are folded from the log once
 * for all its subscribers, while it has any.
 */
export class AgentStreams {
  readonly #deps: AgentStreamsDeps;
  readonly #groups = new Map<string, Promise<Group>>();

  constructor(deps: AgentStreamsDeps) {
    this.#deps = deps;
  }

  /** Sends a snapshot and the frames after it. Returns the function that ends the subscription. */
  async subscribe(workspace: string, subscriber: AgentSubscriber): Promise<() => void> {
    const group = await this.#group(workspace);
    if (group.isClosed) return this.subscribe(workspace, subscriber);
    const { agent } = subscriber;
    const agents = agent === undefined ? group.fold.living().slice(0, MAX_AGENTS) : [group.fold.view(agent)];
    subscriber.onSnapshot({ agents, cursor: group.tail.cursorAt(group.at) });
    group.deliveries.set(subscriber, new Delivery(subscriber));
    return () => {
      group.deliveries.delete(subscriber);
      if (group.deliveries.size === 0) this.#drop(workspace, group);
    };
  }

  async #group(workspace: string): Promise<Group> {
    const known = this.#groups.get(workspace) ?? this.#open(workspace);
    this.#groups.set(workspace, known);
    try {
      const group = await known;
      if (!group.tail.failure && this.#groups.get(workspace) === known) return group;
    } catch (error) {
      if (this.#groups.get(workspace) === known) this.#groups.delete(workspace);
      throw error;
    }
    if (this.#groups.get(workspace) === known) this.#groups.delete(workspace);
    return this.#group(workspace);
  }

  async #open(workspace: string): Promise<Group> {
    const { log, findOpenSessions, onSpeech, metrics } = this.#deps;
    const { tail, release } = await log.open(workspace);
    try {
      let at: number;
      let fold: AgentFold;
      // Again if the log has grown beyond the buffer while the agents were read.
      do {
        at = tail.position;
        fold = await loadAgents({ pool: log.pool, findOpenSessions }, workspace, tail.agents, at);
      } while (!tail.failure && tail.eventsAfter(at) === null);
      const stopListening = tail.onMove(() => this.#advance(group));
      const stopHearing = onSpeech(workspace, (speech) => push(group, group.fold.hear(speech)));
      const stopSampling = metrics?.follow(workspace, {
        isWanted: () => [...group.deliveries.keys()].some(({ kinds }) => kinds.has('metrics')),
        push: (frames) => push(group, frames),
      });
      const end = (): void => (stopListening(), stopHearing(), stopSampling?.(), release());
      const memoryReads = new MemoryReads();
      const group: Group = { tail, fold, end, deliveries: new Map(), at, isClosed: false, memoryReads };
      this.#advance(group);
      return group;
    } catch (error) {
      release();
      throw error;
    }
  }

  #drop(workspace: string, group: Group): void {
    if (group.isClosed) return;
    group.isClosed = true;
    this.#groups.delete(workspace);
    group.end();
  }

  #advance(group: Group): void {
    const { tail, fold, deliveries } = group;
    const events = tail.failure ? null : tail.eventsAfter(group.at);
    if (!events) {
      // The log was restored. Subscribers subscribe again and get a new snapshot.
      for (const { onEnd } of [...deliveries.keys()]) onEnd(tail.failure);
      return;
    }
    group.at = tail.position;
    for (const event of events) {
      push(group, fold.advance(event));
      if (canChangeMemory(event)) this.#readMemory(group, event);
    }
  }

  /** Sends the changes of memory by an event, after the frames of the event itself. */
  #readMemory(group: Group, event: TailEvent): void {
    const { memory } = this.#deps;
    const wanted = [...event.agents].filter((agentId) =>
      [...group.deliveries.values()].some((delivery) => delivery.wants(agentId, 'memory')),
    );
    if (memory === null || wanted.length === 0) return;
    group.memoryReads.add(async (withinMs) => {
      for (const agentId of wanted) {
        if (group.isClosed) return;
        const frames = await memory.read(group.tail.workspace, agentId, event, withinMs);
        push(group, frames);
      }
    });
  }
}
