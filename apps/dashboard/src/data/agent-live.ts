import { isAgentFrame, type AgentFrame, type MethodResult, type RouteReply } from '@antiphon/client';
import { useEffect } from 'react';
import { client, connection, onFrame } from './gateway.js';
import { identity } from './identity.js';
import { usePosition } from './router.js';
import { createStore, useStore } from './store.js';

type Snapshot = MethodResult<'agent.subscribe'>;
type StateView = Pick<Snapshot['agents'][number], 'state' | 'phase'>;
type Metrics = RouteReply<'listAgentMetrics'>['agents'][number];
type MetricsFrame = Extract<AgentFrame, { type: 'agent.metrics' }>;

/** States of agents since the subscription, which come sooner than a list that is read again. */
const states = createStore<ReadonlyMap<string, StateView>>(new Map());
/** Samples of agents that came as frames, oldest first. */
const samples = createStore<ReadonlyMap<string, readonly MetricsFrame[]>>(new Map());

/** Number of samples of 30 minutes. */
const MAX_SAMPLES = 60;
/** Number of agents whose samples the tab keeps. */
const MAX_AGENTS = 1_000;

const keepSample = (frame: MetricsFrame): void =>
  samples.update((before) => {
    const next = new Map(before);
    const own = (before.get(frame.agentId) ?? []).filter(({ latest }) => latest.at !== frame.latest.at);
    next.delete(frame.agentId);
    next.set(frame.agentId, [...own, frame].slice(-MAX_SAMPLES));
    for (const oldest of next.keys()) if (next.size > MAX_AGENTS) next.delete(oldest);
    return next;
  });

const hear = (frame: AgentFrame): void => {
  if (frame.type === 'agent.metrics') return keepSample(frame);
  if (frame.type !== 'agent_broadcast_state') return;
  const { agentId, to: state, phase } = frame;
  states.update((before) => new Map(before).set(agentId, { state, phase }));
};
onFrame((frame) => {
  if (isAgentFrame(frame)) hear(frame);
});

let users = 0;
let stopFollowing = (): void => undefined;

const subscribe = async (): Promise<void> => {
  const { permissions } = identity.get();
  const hasCosts = permissions === null || permissions.includes('budgets:read');
  // Frames between the reply and this line are newer than it.
  states.set(new Map());
  const { agents } = await client.call('agent.subscribe', {
    frames: hasCosts ? ['state', 'metrics'] : ['state'],
  });
  states.update((newer) => {
    const snapshot = agents.map(({ agentId, ...state }) => [agentId, state] as const);
    return new Map([...snapshot, ...newer]);
  });
};

const begin = (): void => {
  if (connection.get().state === 'connected') void subscribe().catch(() => undefined);
  else states.set(new Map());
};

/** Subscribes while a page shows agents, and again after each lost connection. */
const follow = (): (() => void) => {
  if (++users === 1) {
    stopFollowing = connection.subscribe(begin);
    begin();
  }
  return () => {
    if (--users > 0) return;
    stopFollowing();
    states.set(new Map());
    void client.call('agent.unsubscribe', {}).catch(() => undefined);
  };
};

/** Follows states and samples of all agents while the component is shown in the present. */
export const useLiveAgents = (): void => {
  const isPast = usePosition() !== null;
  useEffect(() => (isPast ? undefined : follow()), [isPast]);
};

/** Returns an agent with its newest state. */
export const useLiveState = <T extends { readonly id: string } & StateView>(agent: T): T => {
  const isPast = usePosition() !== null;
  const live = useStore(states).get(agent.id);
  return isPast || !live ? agent : { ...agent, ...live };
};

/** Returns read metrics with the samples that came since. */
export const withSamples = (read: Metrics, frames: readonly MetricsFrame[]): Metrics => {
  const known = read.latest?.at ?? '';
  const newer = frames.filter(({ latest }) => latest.at >= known);
  const last = newer.at(-1);
  if (!last) return read;
  const times = new Set(newer.map(({ latest }) => latest.at));
  const older = read.recent.filter(({ at }) => !times.has(at));
  return {
    ...{ agentId: read.agentId, latest: last.latest, today: last.today },
    recent: [...older, ...newer.map(({ latest }) => latest)].slice(-MAX_SAMPLES),
  };
};

const NONE: readonly MetricsFrame[] = [];

/** Returns the metrics of an agent as they are now. */
export const useLiveMetrics = (agentId: string, read: Metrics | undefined): Metrics | undefined => {
  const isPast = usePosition() !== null;
  const frames = useStore(samples).get(agentId) ?? NONE;
  return read && !isPast ? withSamples(read, frames) : read;
};

/** Returns the samples of an agent that came as frames, oldest first. */
export const useLiveSamples = (agentId: string): readonly MetricsFrame['latest'][] => {
  const isPast = usePosition() !== null;
  const frames = useStore(samples).get(agentId) ?? NONE;
  return isPast ? [] : frames.map(({ latest }) => latest);
};
