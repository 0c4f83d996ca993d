import { causedError } from '@antiphon/contracts/causes';
import { AGENT_CHANGE_SUBJECT, agentStream } from '@antiphon/contracts/agent';
import type { AgentView } from '@antiphon/contracts/agent';
import { contextSizes, findInputs, workspaceConfig } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';
import type { EventStore } from '@antiphon/event-store';
import { notFound, repeatEvery } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { z } from 'zod';
import { agentUuidOf } from '@antiphon/agent-log';
import type { KnownProviders } from '../agents.tokens.js';
import { charsOf, checkLiving, foldAgent, toConfigured, toSpawned } from './directory-agent.js';
import type { AgentFacts, DirectoryAgent } from './directory-agent.js';

interface Entry extends AgentFacts {
  readonly agent: DirectoryAgent | null;
}

/** A changed agent, as the change subject carries it. */
export const AgentChange = z.object({ workspace: z.string(), agentIds: z.array(z.string()) });
export type AgentChange = z.infer<typeof AgentChange>;

/** Reads the agents that changed after a mark, and the next mark. */
export type ReadAgentChanges = (
  mark: number,
) => Promise<{ readonly changes: readonly AgentChange[]; readonly mark: number }>;

export interface AgentDirectoryDeps {
  readonly config: AntiphonConfig;
  readonly store: Pick<EventStore, 'readStream'>;
  readonly nats: NatsLink;
  readonly logger: Logger;
  /** Absent: only configured providers exist. */
  readonly providers?: KnownProviders;
  /** Absent: changes arrive by notification only. */
  readonly readChanges?: ReadAgentChanges;
}

/** Interval between reads of changes, ms: a lost notification costs this much. */
const POLL_MS = 500;
/** Maximum number of cached agents, and of UTF-16 units of their texts. */
const MAX_ENTRIES = 10_000;
const MAX_CHARS = 32 * 1024 * 1024;

const keyOf = (workspace: string, agentId: string): string => `${workspace}\n${agentId}`;

/**
 * Agents of all workspaces, configured and spawned ones. A bounded cache of the folds of their
 * event streams. Another process's change arrives by notification, or at the next poll.
 */
export class AgentDirectory {
  /** Least recently used first. */
  private readonly entries = new Map<string, Entry>();
  private readonly loading = new Map<string, Promise<Entry>>();
  private readonly pins = new Map<string, number>();
  private chars = 0;
  private mark = 0;
  private changeListener: (workspace: string, agent: DirectoryAgent) => void = () => undefined;

  constructor(private readonly deps: AgentDirectoryDeps) {}

  /** Returns an agent from the cache. Null: it does not exist. Undefined: `load` it first. */
  find(workspace: string, agentId: string): DirectoryAgent | null | undefined {
    return this.entry(workspace, agentId)?.agent;
  }

  /** Returns an agent, from the cache or from the log; null if it does not exist. */
  async load(workspace: string, agentId: string): Promise<DirectoryAgent | null> {
    return (await this.loadEntry(workspace, agentId)).agent;
  }

  /**
   * Returns an agent that can get work. Throws `AGENT.NOT_FOUND`, and `AGENT.TERMINATED` for one
   * that has ended.
   */
  async require(workspace: string, agentId: string): Promise<DirectoryAgent> {
    const agent = await this.load(workspace, agentId);
    if (agent) return checkLiving(agent);
    const { agents } = workspaceConfig(this.deps.config, workspace);
    throw causedError(
      notFound,
      'AGENT.NOT_FOUND',
      agents.length === 0 ? { kind: 'no_agent_configured', workspace } : { kind: 'agent_missing', agentId },
    );
  }

  /**
   * Returns true for a provider that agents of a workspace can have: a configured or connected one.
   */
  async knowsProvider(workspace: string, name: string): Promise<boolean> {
    const { config, providers } = this.deps;
    if (config.providers.some((configured) => configured.name === name)) return true;
    if (!providers?.find(workspace, name)) await providers?.read(workspace);
    return (providers?.find(workspace, name) ?? null) !== null;
  }

  /** Returns the formats that the model of an agent takes, and the size of its context. */
  async inputsOf(
    workspace: string,
    { provider: name, model }: Pick<AgentView, 'provider' | 'model'>,
  ): Promise<Required<Pick<AgentView, 'contextTokens' | 'inputs'>>> {
    const { config, providers } = this.deps;
    const configured = config.providers.find((one) => one.name === name);
    if (!configured) await this.knowsProvider(workspace, name);
    const provider = configured ?? providers?.find(workspace, name) ?? null;
    const { images, documents, contextWindow } = findInputs(config, provider, model);
    const { contextTokens } = contextSizes(contextWindow, config.memory.contextTokens);
    const media = [...(images ? ['image' as const] : []), ...(documents ? ['document' as const] : [])];
    return { contextTokens, inputs: ['text', ...media] };
  }

  /** Returns the facts of an agent, from the cache or from the log. */
  async facts(workspace: string, agentId: string): Promise<AgentFacts> {
    return this.loadEntry(workspace, agentId);
  }

  /** Caches the facts of an agent that this process has just appended. */
  async remember(workspace: string, agentId: string, facts: AgentFacts): Promise<void> {
    this.put(keyOf(workspace, agentId), await this.toEntry(workspace, agentId, facts));
  }

  /** Sets the listener for agents of the cache that changed. */
  onChange(listener: (workspace: string, agent: DirectoryAgent) => void): void {
    this.changeListener = listener;
  }

  /** Returns an agent and its ancestors, the root last; the agent alone if it is not loaded. */
  chainOf(workspace: string, agentId: string): readonly string[] {
    return this.find(workspace, agentId)?.chain ?? [agentId];
  }

  /** Reads the facts of an agent from the log, and caches them. */
  async readFacts(workspace: string, agentId: string): Promise<AgentFacts> {
    return this.read(workspace, agentId);
  }

  /** Keeps an agent in the cache until the returned function is called. */
  pin(workspace: string, agentId: string): () => void {
    const key = keyOf(workspace, agentId);
    this.pins.set(key, (this.pins.get(key) ?? 0) + 1);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      const left = (this.pins.get(key) ?? 1) - 1;
      if (left > 0) this.pins.set(key, left);
      else this.pins.delete(key);
    };
  }

  /** Reads changed agents again if they are cached, and tells the other processes. */
  async announce(change: AgentChange): Promise<void> {
    const { nats } = this.deps;
    // A lost notification costs the other processes one poll.
    if (nats.isConnected()) nats.connection.publish(AGENT_CHANGE_SUBJECT, JSON.stringify(change));
    await this.refresh(change);
  }

  /** Follows changes of other processes until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    const { nats, logger } = this.deps;
    let isFailing = false;
    const subscription = nats.connection.subscribe(AGENT_CHANGE_SUBJECT, {
      callback: (_error, message) => {
        Promise.resolve()
          .then(() => this.refresh(AgentChange.parse(message.json())))
          .catch((error: unknown) => logger.warn({ err: error }, 'agent notification failed'));
      },
    });
    const poll = async (): Promise<void> => {
      try {
        await this.poll();
        isFailing = false;
      } catch (error) {
        // Once an outage, not at each poll.
        if (!isFailing) logger.warn({ err: error }, 'agent directory refresh failed');
        isFailing = true;
      }
    };
    await repeatEvery(poll, POLL_MS, signal);
    subscription.unsubscribe();
  }

  private async poll(): Promise<void> {
    if (!this.deps.readChanges) return;
    const { changes, mark } = await this.deps.readChanges(this.mark);
    this.mark = mark;
    for (const change of changes) await this.refresh(change);
  }

  private async refresh({ workspace, agentIds }: AgentChange): Promise<void> {
    const used = agentIds.filter((agentId) => {
      const key = keyOf(workspace, agentId);
      return this.entries.has(key) || this.loading.has(key);
    });
    const entries = await Promise.all(used.map((agentId) => this.read(workspace, agentId)));
    for (const { agent } of entries) if (agent) this.changeListener(workspace, agent);
  }

  private entry(workspace: string, agentId: string): Entry | undefined {
    const key = keyOf(workspace, agentId);
    const entry = this.entries.get(key);
    if (!entry) return undefined;
    this.entries.delete(key);
    this.entries.set(key, entry);
    return entry;
  }

  private async loadEntry(workspace: string, agentId: string): Promise<Entry> {
    const cached = this.entry(workspace, agentId);
    if (cached) return cached;
    const key = keyOf(workspace, agentId);
    const running = this.loading.get(key);
    if (running) return running;
    const loading = this.read(workspace, agentId).finally(() => this.loading.delete(key));
    this.loading.set(key, loading);
    return loading;
  }

  private async read(workspace: string, agentId: string): Promise<Entry> {
    const { store } = this.deps;
    const events = await store.readStream(workspace, agentStream(agentUuidOf(workspace, agentId)));
    const facts = { record: foldAgent(events), version: events.length };
    return this.put(keyOf(workspace, agentId), await this.toEntry(workspace, agentId, facts));
  }

  private async toEntry(workspace: string, agentId: string, facts: AgentFacts): Promise<Entry> {
    const { record, version } = facts;
    const { agents } = workspaceConfig(this.deps.config, workspace);
    const configured = agents.find(({ id }) => id === agentId);
    if (configured) return { agent: toConfigured(configured, record), record, version };
    // The parent of an agent never changes.
    const parent = record.parentId === null ? null : await this.load(workspace, record.parentId);
    const chain = [agentId, ...(parent?.chain ?? [])];
    return { agent: toSpawned(agentId, record, agents, chain), record, version };
  }

  /** Caches an entry unless a newer one is cached. Unknown agents are not cached. */
  private put(key: string, entry: Entry): Entry {
    const cached = this.entries.get(key);
    if (cached && cached.version > entry.version) return cached;
    this.remove(key);
    if (!entry.agent && entry.version === 0) return entry;
    this.entries.set(key, entry);
    this.chars += charsOf(entry);
    this.evict();
    return entry;
  }

  private evict(): void {
    for (const key of this.entries.keys()) {
      if (this.entries.size <= MAX_ENTRIES && this.chars <= MAX_CHARS) return;
      if (!this.pins.has(key)) this.remove(key);
    }
  }

  private remove(key: string): void {
    const entry = this.entries.get(key);
    if (!entry) return;
    this.entries.delete(key);
    this.chars -= charsOf(entry);
  }
}

/** The directory as turns use it. */
export type PolicyAgents = Pick<AgentDirectory, 'find' | 'load' | 'require' | 'pin'>;
