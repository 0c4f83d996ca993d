import { CALL_LIMIT_KEYS, resolveCallLimits } from '@antiphon/config';
import type { ProviderConfig, ResolvedLimits } from '@antiphon/config';
import { createBoundedMap } from '@antiphon/kernel';
import type { AgentLimits, DriverLimits, ModelRequest } from '@antiphon/providers-domain';
import { cancelled, timedOut } from '../transport/failures.js';
import { FIXED_PROVIDER_LIMITS } from '../transport/provider-call.js';
import type { ProviderLimits } from '../transport/provider-call.js';
import { CallQueue } from './call-queue.js';

type Limited = Pick<ModelRequest, 'provider' | 'model' | 'agent'>;
type QueuedCall = Limited & Pick<ModelRequest, 'signal'> & { readonly workspace: string };

/** Maximum number of models of providers whose limits are kept. */
const MAX_KEPT = 256;
/** Longest wait for a connection of a spawned agent, ms. */
const SPAWNED_CONNECT_MS = 60_000;
/** Time that a call may take besides its waits, ms. */
const MARGIN_MS = 5_000;

const ownerOf = ({ origins }: ResolvedLimits, name: keyof ResolvedLimits['origins'], provider: string) =>
  origins[name].startsWith('agent ') ? origins[name] : `provider ${provider}`;

/** A number of places for calls. */
interface Place {
  /** Owner of the setting, such as `provider x`. */
  readonly owner: string;
  /** Workspace whose calls share the places of an agent. */
  readonly id: string;
  readonly most: number;
}

/**
 * Limits of the calls of this process: their times, and the places of providers and agents that
 * limit concurrent calls.
 */
export class CallLimiter {
  private readonly providers: ReadonlyMap<string, ProviderConfig>;
  private readonly kept = createBoundedMap<ResolvedLimits>(MAX_KEPT);
  private readonly queues = new Map<string, CallQueue>();
  /** Number of calls that wait for a place. */
  private waiting = 0;

  /** @param overrides limits of tests, which win over all settings */
  constructor(
    providers: readonly ProviderConfig[],
    private readonly overrides: Partial<ProviderLimits> = {},
  ) {
    this.providers = new Map(providers.map((provider) => [provider.name, provider]));
  }

  /** Returns the limits of a call, to a provider of the configuration unless one is given. */
  limitsOf(call: Limited, provider?: ProviderConfig): ProviderLimits {
    const limits = provider ? resolveCallLimits(provider, call.model, call.agent) : this.resolve(call);
    const { connectMs, firstByteMs, betweenBytesMs, attemptMs, retryTimeouts } = limits;
    const names = {
      connectMs: 'connectMs',
      firstByteMs: 'firstByteMs',
      idleMs: 'betweenBytesMs',
      totalMs: 'attemptMs',
    } as const;
    return {
      ...FIXED_PROVIDER_LIMITS,
      ...{ connectMs, firstByteMs, idleMs: betweenBytesMs, totalMs: attemptMs, retryTimeouts },
      ...this.overrides,
      ownerOf: (limit) => ownerOf(limits, names[limit], call.provider),
    };
  }

  /** Returns the limits of a call that its driver respects. */
  driverLimitsOf(call: Omit<Limited, 'agent'>, agent?: AgentLimits): DriverLimits {
    const { maxOutputTokens, attemptMs, connectMs, tries } = this.resolve({ ...call, agent });
    return { maxOutputTokens, tries, longestMs: connectMs + 2 * attemptMs + MARGIN_MS };
  }

  /** Returns the number of calls that wait for a free place. */
  countWaiting(): number {
    return this.waiting;
  }

  /** Returns the longest time that a call of an agent waits for a connection to a provider, ms. */
  longestConnectMs(provider: string, agents: readonly Pick<AgentLimits, 'connectMs'>[] = []): number {
    const { connectMs } = { ...this.resolve({ provider, model: '' }), ...this.overrides };
    return Math.max(connectMs, SPAWNED_CONNECT_MS, ...agents.map((agent) => agent.connectMs ?? 0));
  }

  /**
   * Waits for the places that a call needs. Resolves with the function that frees them. Throws a
   * `ModelFailure` of a call that was not sent if the signal aborts, or no place is free in time.
   */
  async enter(call: QueuedCall): Promise<() => void> {
    const places = this.placesOf(call);
    const releases: (() => void)[] = [];
    const release = (): void => {
      for (const free of releases) free();
    };
    if (places.length === 0) return release;
    const { attemptMs: ms, retryTimeouts } = this.resolve(call);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), ms);
    this.waiting += 1;
    try {
      const signal = AbortSignal.any([call.signal, late.signal]);
      for (const place of places) releases.push(await this.enterOne(place, call.workspace, signal));
      return release;
    } catch {
      release();
      if (call.signal.aborted) throw cancelled(false);
      const setting = `${CALL_LIMIT_KEYS.concurrentCalls} of ${places[releases.length]?.owner ?? ''}`;
      throw timedOut({ awaited: 'free_place', ms, setting }, false, retryTimeouts);
    } finally {
      this.waiting -= 1;
      clearTimeout(timer);
    }
  }

  private async enterOne(
    { owner, most, id }: Place,
    workspace: string,
    signal: AbortSignal,
  ): Promise<() => void> {
    const key = `${owner} ${id}`;
    const queue = this.queues.get(key) ?? new CallQueue(most);
    this.queues.set(key, queue);
    const leave = await queue.enter(workspace, signal);
    return () => {
      leave();
      if (queue.isIdle) this.queues.delete(key);
    };
  }

  private placesOf({ workspace, agent, provider }: QueuedCall): readonly Place[] {
    const own = agent?.concurrentCalls;
    const base = agent?.shared;
    const shared = this.providers.get(provider)?.concurrentCalls;
    return [
      ...(own === undefined ? [] : [{ owner: `agent ${agent?.id}`, id: workspace, most: own }]),
      ...(base === undefined
        ? []
        : [{ owner: `agent ${base.id}`, id: workspace, most: base.concurrentCalls }]),
      ...(shared === undefined ? [] : [{ owner: `provider ${provider}`, id: '', most: shared }]),
    ];
  }

  private resolve({ provider: name, model, agent }: Limited): ResolvedLimits {
    const provider = this.providers.get(name) ?? ({ name, kind: 'scripted' } as ProviderConfig);
    if (agent) return resolveCallLimits(provider, model, agent);
    const key = `${name}/${model}`;
    const found = this.kept.get(key) ?? resolveCallLimits(provider, model);
    this.kept.put(key, found);
    return found;
  }
}
