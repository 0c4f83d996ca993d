import { describe, it } from '@jest/globals';
import type { BudgetEvent, BudgetEventOf } from '@antiphon/contracts/metering';
import { specFor } from '@antiphon/testing';
import { reservationDecider } from '@antiphon/metering-domain';

const ID = '7a0c3f9e-0000-5000-8000-000000000001';
const SESSION = '7a0c3f9e-0000-4000-8000-0000000000aa';
const NOW = '2026-11-21T10:00:30.000Z';
const EXPIRES = '2026-11-21T10:05:00.000Z';
type Reserved = BudgetEventOf<'BudgetReserved'>['data'];

const CACHED = { cacheReadTokens: 500, cacheWriteTokens: 300, cacheWrite1hTokens: 200 };
const CACHED_PRICE = {
  inputMicroUsdPerMtok: 3_000_000,
  outputMicroUsdPerMtok: 15_000_000,
  cacheReadMicroUsdPerMtok: 300_000,
  cacheWriteMicroUsdPerMtok: 3_750_000,
  cacheWrite1hMicroUsdPerMtok: 6_000_000,
};

const scope = (limitTokens: number | null, limitMicroUsd: number | null) =>
  ({ kind: 'session', key: `session/${SESSION}`, limitTokens, limitMicroUsd }) as const;

const reservedData = (over: Partial<Reserved> = {}): Reserved => ({
  reservationId: ID,
  sessionId: SESSION,
  turnId: '7a0c3f9e-0000-4000-8000-0000000000bb',
  attempt: 1,
  agentId: 'main',
  sessionKey: 'main:cli:me:you',
  provider: 'anthropic',
  model: 'claude-sonnet',
  scopes: [scope(10_000, null)],
  inputBound: 1_000,
  outputBound: 500,
  tokens: 1_500,
  microUsd: 10_500,
  price: { inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 },
  reservedAt: '2026-11-21T10:00:00.000Z',
  expiresAt: EXPIRES,
  ...over,
});
const reserved = (over: Partial<Reserved> = {}): BudgetEvent => ({
  type: 'BudgetReserved',
  schemaVersion: 1,
  data: reservedData(over),
});
const settled = (
  inputTokens: number,
  outputTokens: number,
  microUsd: number,
  estimated = false,
  cached: Partial<typeof CACHED> = {},
): BudgetEvent => ({
  type: 'BudgetSettled',
  schemaVersion: 1,
  data: { reservationId: ID, inputTokens, ...cached, outputTokens, microUsd, estimated, settledAt: NOW },
});
const released = (): BudgetEvent => ({
  type: 'BudgetReleased',
  schemaVersion: 1,
  data: { reservationId: ID, reason: 'provider unreachable', releasedAt: NOW },
});
const expired = (): BudgetEvent => ({
  type: 'BudgetExpired',
  schemaVersion: 1,
  data: { reservationId: ID, tokens: 1_500, microUsd: 10_500, expiredAt: EXPIRES },
});
const corrected = (inputTokens: number, outputTokens: number, microUsd: number): BudgetEvent => ({
  type: 'BudgetCorrected',
  schemaVersion: 1,
  data: { reservationId: ID, inputTokens, outputTokens, microUsd, correctedAt: NOW },
});
const used = (inputTokens: number, outputTokens: number) =>
  ({
    type: 'Settle',
    now: NOW,
    outcome: { kind: 'used', inputTokens, outputTokens, estimated: false },
  }) as const;
const unknown = { type: 'Settle', now: NOW, outcome: { kind: 'unknown' } } as const;
const notDispatched = {
  type: 'Settle',
  now: NOW,
  outcome: { kind: 'not_dispatched', reason: 'provider unreachable' },
} as const;

const given = specFor(reservationDecider);

describe('a reservation', () => {
  it('is made once', () => {
    given([]).when({ type: 'Reserve', reserved: reservedData() }).then([reserved()]);
    given([reserved()])
      .when({ type: 'Reserve', reserved: reservedData() })
      .thenRejects('METERING.RESERVATION_EXISTS');
  });

  it('settles at what was used, at the price of its admission', () =>
    given([reserved()])
      .when(used(900, 100))
      .then([settled(900, 100, 4_200)]));

  it('settles without a cost when its model had no price', () =>
    given([reserved({ price: null, microUsd: 0 })])
      .when(used(900, 100))
      .then([settled(900, 100, 0)]));

  it('charges cached input at its own prices, of its admission', () =>
    given([reserved({ price: CACHED_PRICE, microUsd: 11_250 })])
      .when({
        ...{ type: 'Settle', now: NOW },
        outcome: { kind: 'used', inputTokens: 900, ...CACHED, outputTokens: 100, estimated: false },
      })
      // 100 fresh, 500 read, 100 written, 200 written for an hour, 100 of output.
      .then([settled(900, 100, 300 + 150 + 375 + 1_200 + 1_500, false, CACHED)]));

  it('charges cached input as other input at a price that does not name it', () =>
    given([reserved()])
      .when({
        ...{ type: 'Settle', now: NOW },
        outcome: { kind: 'used', inputTokens: 900, ...CACHED, outputTokens: 100, estimated: false },
      })
      .then([settled(900, 100, 4_200, false, CACHED)]));

  it('charges its bound at the dearest price of input when the usage is unknown', () =>
    given([reserved({ price: CACHED_PRICE, microUsd: 13_500 })])
      .when(unknown)
      .then([settled(1_000, 500, 13_500, true)]));

  it('charges its bound as an estimate when the usage is unknown', () =>
    given([reserved()])
      .when(unknown)
      .then([settled(1_000, 500, 10_500, true)]));

  it('is released when nothing reached the provider', () =>
    given([reserved()]).when(notDispatched).then([released()]));

  it('stays settled after any later outcome', () => {
    const end = settled(900, 100, 4_200);
    given([reserved(), end]).when(used(1, 1)).thenNothing();
    given([reserved(), end]).when(unknown).thenNothing();
    given([reserved(), end]).when(notDispatched).thenNothing();
    given([reserved(), end]).when({ type: 'Expire', now: EXPIRES }).thenNothing();
  });

  it('stays released when nothing was sent, and does not expire', () => {
    given([reserved(), released()]).when(notDispatched).thenNothing();
    given([reserved(), released()]).when({ type: 'Expire', now: EXPIRES }).thenNothing();
  });

  // @shows review1-18
  it('is charged once for a call that ran after its release', () => {
    given([reserved(), released()])
      .when(used(900, 100))
      .then([corrected(900, 100, 4_200)]);
    given([reserved(), released()])
      .when(unknown)
      .then([corrected(1_000, 500, 10_500)]);
    given([reserved(), released(), corrected(900, 100, 4_200)])
      .when(used(900, 100))
      .thenNothing();
  });

  it('has nothing to settle before it was made', () => given([]).when(used(1, 1)).thenNothing());
});

describe('a reservation that expires', () => {
  it('is charged at its bound, not freed', () =>
    given([reserved()]).when({ type: 'Expire', now: EXPIRES }).then([expired()]));

  it('does not expire early', () =>
    given([reserved()]).when({ type: 'Expire', now: NOW }).thenRejects('METERING.NOT_EXPIRED'));

  it('is corrected by usage that comes later, once', () => {
    given([reserved(), expired()])
      .when(used(900, 100))
      .then([corrected(900, 100, 4_200)]);
    given([reserved(), expired(), corrected(900, 100, 4_200)])
      .when(used(800, 100))
      .thenNothing();
  });

  it('is corrected to nothing when it turns out that nothing was sent', () =>
    given([reserved(), expired()])
      .when(notDispatched)
      .then([corrected(0, 0, 0)]));

  it('retains its estimate when the outcome is unknown', () =>
    given([reserved(), expired()]).when(unknown).thenNothing());
});

describe('a settlement over its bound', () => {
  it('is recorded whole', () =>
    given([reserved()])
      .when(used(1_400, 200))
      .then([settled(1_400, 200, 7_200)]));

  it('is recorded whole when a late correction shows it', () =>
    given([reserved(), expired()])
      .when(used(1_400, 200))
      .then([corrected(1_400, 200, 7_200)]));
});
