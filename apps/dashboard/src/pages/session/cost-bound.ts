import type { LogEvent, RouteReply } from '@antiphon/client';
import { formatCompact, formatUsd } from '../../ui/format.js';
import { numberOf } from '../../data/read-fields.js';

type Scope = RouteReply<'readBudgets'>['scopes'][number];

/** Maximum cost of a model call, as its reservation has it. */
export interface Reserved {
  readonly turnId: string;
  readonly model: string;
  readonly inputBound: number;
  readonly outputBound: number;
  readonly microUsd: number;
  readonly inputPrice: number;
  readonly outputPrice: number;
}

const INPUT_PRICES = [
  ...['inputMicroUsdPerMtok', 'cacheReadMicroUsdPerMtok'],
  ...['cacheWriteMicroUsdPerMtok', 'cacheWrite1hMicroUsdPerMtok'],
];

/** Reads a `BudgetReserved`. */
export const reservedOf = ({ data }: LogEvent): Reserved => {
  const fields = (data ?? {}) as Readonly<Record<string, unknown>>;
  const price = (fields['price'] ?? {}) as Readonly<Record<string, unknown>>;
  return {
    turnId: String(fields['turnId']),
    model: `${String(fields['provider'])}/${String(fields['model'])}`,
    inputBound: numberOf(fields['inputBound']),
    outputBound: numberOf(fields['outputBound']),
    microUsd: numberOf(fields['microUsd']),
    // A reservation counts input at the dearest of its prices.
    inputPrice: Math.max(...INPUT_PRICES.map((name) => numberOf(price[name]))),
    outputPrice: numberOf(price['outputMicroUsdPerMtok']),
  };
};

/** A turn with the model that it called; null if it called none. */
interface Called {
  readonly turnId: string;
  readonly model: string | null;
}

/**
 * Returns the maximum cost of the recorded calls of some turns with a model, in micro-USD. An empty
 * model keeps theirs. Returns null if a call of a turn, or the price of the model, is not known.
 */
export const reservedWith = (
  all: readonly Reserved[],
  turns: readonly Called[],
  model: string,
): { readonly calls: number; readonly microUsd: number } | null => {
  const turnIds = new Set(turns.map(({ turnId }) => turnId));
  const own = all.filter(({ turnId }) => turnIds.has(turnId));
  const known = new Set(own.map(({ turnId }) => turnId));
  if (turns.some(({ turnId, model: called }) => called !== null && !known.has(turnId))) return null;
  const priced = all.findLast((reserved) => reserved.model === model);
  if (model !== '' && !priced) return null;
  const microUsd = own.reduce((total, call) => {
    if (!priced) return total + call.microUsd;
    const perMtok = call.inputBound * priced.inputPrice + call.outputBound * priced.outputPrice;
    return total + Math.ceil(perMtok / 1_000_000);
  }, 0);
  return { calls: own.length, microUsd };
};

interface Left {
  readonly key: string;
  readonly left: number;
}

const least = (parts: readonly Left[]): Left | undefined =>
  parts.toSorted((one, other) => one.left - other.left)[0];

/** A new session has all of the limit of a session; other budgets have what is left of theirs. */
const leftOf = (scope: Scope, limit: number | null, used: number): Left[] => {
  if (limit === null) return [];
  if (scope.kind === 'session') return [{ key: 'a new session', left: limit }];
  return [{ key: scope.key, left: Math.max(0, limit - used) }];
};

/** Returns in words what no call of a new session can exceed; null if no budget limits it. */
export const boundOf = (scopes: readonly Scope[]): string | null => {
  const money = least(
    scopes.flatMap((scope) =>
      leftOf(scope, scope.limitMicroUsd, scope.settledMicroUsd + scope.reservedMicroUsd),
    ),
  );
  const tokens = least(
    scopes.flatMap((scope) => leftOf(scope, scope.limitTokens, scope.settledTokens + scope.reservedTokens)),
  );
  const words = [
    ...(money ? [`${formatUsd(money.left)}, which ${money.key} has left`] : []),
    ...(tokens ? [`${formatCompact(tokens.left)} tokens, which ${tokens.key} has left`] : []),
  ];
  return words.length === 0 ? null : words.join(', and ');
};
