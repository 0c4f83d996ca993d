import type { BudgetEventOf, BudgetScope } from '@antiphon/contracts/metering';
import { violation } from '../audit-check.js';
import type { EventPlace, Finding, MoneyCheck } from '../audit-check.js';
import type { BudgetBook, ScopeBook } from './budget-book.js';

type Reserved = BudgetEventOf<'BudgetReserved'>['data'];

const over = (
  unit: string,
  used: number,
  bound: number,
  limit: number | null,
  key: string,
  at: EventPlace,
): Finding[] =>
  limit !== null && used + bound > limit
    ? [violation(at, `${key} held ${used} ${unit} of ${limit} when ${bound} more were admitted`)]
    : [];

const scopeFindings = (
  scope: BudgetScope,
  book: ScopeBook,
  reserved: Reserved,
  at: EventPlace,
): Finding[] => {
  const { key, limitTokens, limitMicroUsd } = scope;
  const isLimited = limitTokens !== null || limitMicroUsd !== null;
  return [
    ...over('tokens', book.settledTokens + book.reservedTokens, reserved.tokens, limitTokens, key, at),
    ...over(
      'micro-USD',
      book.settledMicroUsd + book.reservedMicroUsd,
      reserved.microUsd,
      limitMicroUsd,
      key,
      at,
    ),
    ...(isLimited && book.frozenBy !== null
      ? [violation(at, `${key} was frozen when a call was admitted`)]
      : []),
    ...(limitMicroUsd !== null && reserved.price === null
      ? [violation(at, `a call without a price was admitted under the money limit of ${key}`)]
      : []),
  ];
};

/** Replays every admission against what its scopes held just before it. The book is kept here and read by others. */
export const admissionsStayWithinLimits = (book: BudgetBook): MoneyCheck => ({
  name: 'admissions-stay-within-limits',
  about:
    'at every admission settled + reserved + bound stayed within the limit then in force, in every scope',
  counts: 'admissions',
  start: () => {
    let admissions = 0;
    const admit = (reserved: Reserved, at: EventPlace): Finding[] => {
      admissions++;
      const { inputBound, outputBound, tokens, scopes } = reserved;
      const sum =
        inputBound + outputBound === tokens ? [] : [violation(at, 'the bound is not the sum of its parts')];
      return [
        ...sum,
        ...scopes.flatMap((scope) => scopeFindings(scope, book.scope(at.workspace, scope.key), reserved, at)),
      ];
    };
    return {
      see: ({ place, content }) => {
        if (!content.type.startsWith('Budget')) return [];
        const findings = content.type === 'BudgetReserved' ? admit(content.data, place) : [];
        book.put(place.workspace, content as Parameters<BudgetBook['put']>[1]);
        return findings;
      },
      end: () => [],
      count: () => admissions,
    };
  },
});
