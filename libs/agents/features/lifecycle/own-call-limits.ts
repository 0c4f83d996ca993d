import { causedError } from '@antiphon/contracts/causes';
import { resolveCallLimits } from '@antiphon/config';
import type { AgentConfig, AntiphonConfig, CallLimitName } from '@antiphon/config';
import type { AgentCallLimits } from '@antiphon/contracts/agent';
import { forbidden } from '@antiphon/kernel';

/** Limit of the configuration that each limit of a request sets, and its unit in ms. */
const NAMES: Readonly<Record<keyof AgentCallLimits, readonly [name: CallLimitName, unit: number]>> = {
  connectS: ['connectMs', 1_000],
  firstByteS: ['firstByteMs', 1_000],
  betweenBytesS: ['betweenBytesMs', 1_000],
  attemptS: ['attemptMs', 1_000],
  tries: ['tries', 1],
  retryTimeouts: ['retryTimeouts', 1],
  maxOutputTokens: ['maxOutputTokens', 1],
  concurrentCalls: ['concurrentCalls', 1],
};

type OwnLimits = Partial<Pick<AgentConfig, CallLimitName>>;

/** Returns the limits that a spawned agent was given, as the configuration has them. */
export const ownCallLimits = (limits: AgentCallLimits): OwnLimits =>
  Object.fromEntries(
    Object.entries(NAMES).flatMap(([key, [name, unit]]) => {
      const value = limits[key as keyof AgentCallLimits];
      if (value === undefined) return [];
      return [[name, typeof value === 'number' ? value * unit : value]];
    }),
  );

type Base = AgentConfig & { readonly base: string };

/**
 * Requires that limits of a request stay within those of the base, for the model of the request.
 * Throws `AGENT.NOT_ALLOWED`.
 */
export const requireLimitsWithin = (
  { providers }: Pick<AntiphonConfig, 'providers'>,
  limits: AgentCallLimits,
  base: Base,
  { provider: name, model }: { readonly provider: string; readonly model: string },
): void => {
  const provider = providers.find((one) => one.name === name);
  if (!provider) return;
  const most = resolveCallLimits(provider, model, { ...base, id: base.base });
  for (const [key, [limit]] of Object.entries(NAMES)) {
    const wanted = ownCallLimits(limits)[limit];
    const allowed = limit === 'concurrentCalls' ? (base.concurrentCalls ?? null) : most[limit];
    if (wanted === undefined || allowed === null || Number(wanted) <= Number(allowed)) continue;
    const inUnit =
      typeof allowed === 'number' ? allowed / (NAMES[key as keyof AgentCallLimits][1] || 1) : allowed;
    const cause = { kind: 'call_limit_over_base', field: key, base: base.base, allowed: inUnit } as const;
    throw causedError(forbidden, 'AGENT.NOT_ALLOWED', cause);
  }
};
