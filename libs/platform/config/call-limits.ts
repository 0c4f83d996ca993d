import type { AgentConfig, ProviderConfig } from './antiphon-config.js';
import { MAX_WAIT_S } from './call-limit-keys.js';
import { maxOutputTokensOf } from './model-outputs.js';
import { PROVIDER_FACTS } from './provider-kinds.js';
import { isLoopbackUrl } from './provider-url.js';

/** Limits of a model call. Times are ms. */
export interface CallLimits {
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly betweenBytesMs: number;
  readonly attemptMs: number;
  readonly tries: number;
  /** False if a wait that ended without an answer is not tried again. */
  readonly retryTimeouts: boolean;
  readonly maxOutputTokens: number;
  /** Null for no limit. */
  readonly concurrentCalls: number | null;
}
export type CallLimitName = keyof CallLimits;

/** Limits that an agent sets for its calls. */
export type AgentLimits = Partial<Pick<AgentConfig, CallLimitName>> & {
  /** Id of the configured agent. */
  readonly id: string;
  /** Model of the agent. Its output limit is written for this model. */
  readonly model: string;
};

/** Key of the file for each limit. */
export const CALL_LIMIT_KEYS: Readonly<Record<CallLimitName, string>> = {
  connectMs: 'connect_s',
  firstByteMs: 'first_byte_s',
  betweenBytesMs: 'between_bytes_s',
  attemptMs: 'attempt_s',
  tries: 'tries',
  retryTimeouts: 'retry_timeouts',
  maxOutputTokens: 'max_output_tokens',
  concurrentCalls: 'concurrent_calls',
};
export const CALL_LIMIT_NAMES = Object.keys(CALL_LIMIT_KEYS) as readonly CallLimitName[];

export const DEFAULT_TRIES = 3;

type Defaults = Omit<CallLimits, 'maxOutputTokens'>;

const DEFAULTS: Defaults = {
  connectMs: 10_000,
  firstByteMs: 60_000,
  betweenBytesMs: 60_000,
  attemptMs: 600_000,
  tries: DEFAULT_TRIES,
  retryTimeouts: true,
  concurrentCalls: null,
};

/**
 * Defaults of models on this machine, which may load for minutes before their first token. A
 * broken call makes such a server begin again, so that the same wait is not tried again.
 */
const LOCAL: Partial<Defaults> = {
  firstByteMs: 600_000,
  betweenBytesMs: 600_000,
  attemptMs: 3_600_000,
  retryTimeouts: false,
};

/** Returns why a provider has the defaults of a local model; null if it has not. */
const localReason = ({ kind, baseUrl }: ProviderConfig): string | null => {
  if (kind === 'ollama') return 'default of kind ollama';
  return isLoopbackUrl(baseUrl ?? PROVIDER_FACTS[kind].baseUrl) ? 'default of a loopback address' : null;
};

/** Limits of a call, with the place that set each of them, such as `provider local`. */
export interface ResolvedLimits extends CallLimits {
  readonly origins: Readonly<Record<CallLimitName, string>>;
}

interface Found {
  readonly value: CallLimits[CallLimitName];
  readonly origin: string;
}

const defaultOf = (name: CallLimitName, provider: ProviderConfig, model: string): Found => {
  if (name === 'maxOutputTokens') return { value: maxOutputTokensOf(model), origin: `default of ${model}` };
  const reason = localReason(provider);
  const local = reason === null ? undefined : LOCAL[name];
  return local === undefined
    ? { value: DEFAULTS[name], origin: 'default' }
    : { value: local, origin: reason ?? '' };
};

/**
 * Returns the output limit. An agent stays within the limit of its provider. On another model, such
 * as its fallback, it also stays within the default of that one.
 */
const outputLimit = (provider: Found, agent: AgentLimits | null, isSet: boolean, model: string): Found => {
  const own = agent?.maxOutputTokens;
  if (agent === null || own === undefined) return provider;
  const isBound = isSet || agent.model !== model;
  return isBound && own > Number(provider.value) ? provider : { value: own, origin: `agent ${agent.id}` };
};

/** Returns the default time of an attempt, which leaves room for its longer waits. */
const defaultAttempt = ({ attemptMs, firstByteMs, betweenBytesMs }: CallLimits): number =>
  Math.min(MAX_WAIT_S * 1_000, Math.max(attemptMs, firstByteMs + betweenBytesMs));

/** Returns the limits of the calls of an agent, or of any other call, to a model of a provider. */
export const resolveCallLimits = (
  provider: ProviderConfig,
  model: string,
  agent: AgentLimits | null = null,
): ResolvedLimits => {
  const find = (name: CallLimitName): Found => {
    const set = provider[name];
    const found =
      set === undefined
        ? defaultOf(name, provider, model)
        : { value: set, origin: `provider ${provider.name}` };
    if (name === 'maxOutputTokens') return outputLimit(found, agent, set !== undefined, model);
    const own = agent?.[name];
    // Calls of an agent have places of their own, within those of the provider.
    if (own === undefined || agent === null || name === 'concurrentCalls') return found;
    return { value: own, origin: `agent ${agent.id}` };
  };
  const found = CALL_LIMIT_NAMES.map((name) => [name, find(name)] as const);
  const limits = Object.fromEntries(found.map(([name, { value }]) => [name, value])) as unknown as CallLimits;
  const isAttemptSet = (agent?.attemptMs ?? provider.attemptMs) !== undefined;
  return {
    ...limits,
    attemptMs: isAttemptSet ? limits.attemptMs : defaultAttempt(limits),
    origins: Object.fromEntries(found.map(([name, { origin }]) => [name, origin])) as Record<
      CallLimitName,
      string
    >,
  };
};
