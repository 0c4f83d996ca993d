import { describe, expect, it } from '@jest/globals';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { BudgetEvent } from '@antiphon/contracts/metering';
import {
  callAborted,
  callCompleted,
  callStarted,
  corrected,
  expired,
  findingsOf,
  place,
  released,
  reserved,
  settled,
  uuid,
} from '../audit-examples.spec.js';
import { BudgetBook } from './budget-book.js';
import { ledgerEqualsUsage } from './ledger-equals-usage.js';

type Event = SessionEvent | BudgetEvent;
const ledger = (...events: Event[]) => findingsOf(ledgerEqualsUsage, place(events));

/** Charge of a lost call at its bound. */
const ESTIMATED = settled(1, { inputTokens: 100, outputTokens: 200, microUsd: 3_300, estimated: true });

/** Cached input costs a tenth to read and twice as much to write. */
const CACHED = {
  price: {
    ...{ inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 },
    ...{ cacheReadMicroUsdPerMtok: 300_000, cacheWriteMicroUsdPerMtok: 4_000_000 },
  },
  microUsd: 3_400,
};
const CACHED_USAGE = {
  ...{ inputTokens: 90, cacheReadTokens: 60, cacheWriteTokens: 20, outputTokens: 10, estimated: false },
};

describe('the figure of a vendor', () => {
  const replacing = (figure: Parameters<typeof corrected>[2], generationId = 'gen-1'): string[] =>
    ledger(
      ...[callStarted(1), reserved(1), callAborted(1, { generationId }), ESTIMATED],
      corrected(1, 10, figure),
    );

  it.each([
    ['of another call', replacing({}, 'gen-2'), 'violation 5 the figure is that of another call'],
    [
      'for another charge',
      replacing({ replacedTokens: 299 }),
      'violation 5 the figure replaced 299 tokens; 300 were charged',
    ],
  ])('%s is reported', (_, findings, finding) => expect(findings).toEqual([finding]));

  it('moves the balances of a reservation that the book has dropped', () => {
    const book = new BudgetBook();
    const events = [reserved(1), ESTIMATED, corrected(1, 10, {})];
    for (const one of place(events)) book.put(one.place.workspace, one.content as BudgetEvent);
    expect([...book.scopes()].map(([, scope]) => scope)).toMatchObject([
      { reservedTokens: 0, settledTokens: 100, settledMicroUsd: 420 },
      { reservedTokens: 0, settledTokens: 100, settledMicroUsd: 420 },
    ]);
  });
});

describe('ledger-equals-usage', () => {
  const calls = (attempt: number): Event[] => [callStarted(attempt), reserved(attempt)];

  it.each([
    ['a completed call', [...calls(1), callCompleted(1), settled(1)]],
    [
      'a lost call at its bound',
      [
        ...calls(1),
        callAborted(1),
        settled(1, { inputTokens: 100, outputTokens: 200, microUsd: 3_300, estimated: true }),
      ],
    ],
    [
      'a lost call whose vendor told its usage later',
      [...calls(1), callAborted(1, { generationId: 'gen-1' }), ESTIMATED, corrected(1, 10, {})],
    ],
    [
      'an expired call whose vendor told its usage later',
      [...calls(1), expired(1), callAborted(1, { generationId: 'gen-1' }), corrected(1, 10, {})],
    ],
    [
      'a failed call that the provider counted',
      [
        ...calls(1),
        callAborted(1, { usage: { inputTokens: 90, outputTokens: 10, estimated: false } }),
        settled(1),
      ],
    ],
    [
      'a call that its provider refused',
      [...calls(1), callAborted(1, { refused: true, reason: 'provider_error' }), released(1)],
    ],
    [
      'a call that was cancelled in the moment of its refusal',
      [...calls(1), callAborted(1, { refused: true, reason: 'cancelled' }), released(1)],
    ],
    [
      'a call that its provider refused while the process stopped in order',
      [...calls(1), callAborted(1, { refused: true, reason: 'driver_lost', released: true }), released(1)],
    ],
    [
      'a call with cached input at its prices',
      [
        callStarted(1),
        reserved(1, CACHED),
        callCompleted(1, { usage: CACHED_USAGE, costMicroUsd: 278 }),
        settled(1, { ...CACHED_USAGE, microUsd: 278 }),
      ],
    ],
    [
      'a lost call at the bound with the dearest price of input',
      [
        ...[callStarted(1), reserved(1, CACHED), callAborted(1)],
        settled(1, { inputTokens: 100, outputTokens: 200, microUsd: 3_400, estimated: true }),
      ],
    ],
    [
      'a cancelled call with the input that was reported and the limit of its output',
      [
        ...calls(1),
        callAborted(1, { usage: { inputTokens: 90, outputTokens: 200, estimated: true } }),
        settled(1, { outputTokens: 200, estimated: true, microUsd: 3_270 }),
      ],
    ],
    ['a call that was never sent', [...calls(1), callAborted(1, { dispatched: false }), released(1)]],
    ['a refused call', [callStarted(1), callAborted(1, { dispatched: false, reason: 'budget_refused' })]],
    ['a reservation whose call never started', [reserved(1), released(1)]],
    [
      'a driver that was lost before it had reserved',
      [callStarted(1), callAborted(1, { reason: 'driver_lost' })],
    ],
    ['an expiry that was corrected', [...calls(1), expired(1), callCompleted(1), corrected(1)]],
    ['an expiry without a later usage', [...calls(1), expired(1), callAborted(1)]],
    [
      'a reservation after the end of its attempt',
      [
        callStarted(1),
        callAborted(1, { reason: 'driver_lost' }),
        reserved(1),
        settled(1, { inputTokens: 100, outputTokens: 200, microUsd: 3_300, estimated: true }),
      ],
    ],
  ])('accepts %s', (_, events) => expect(ledger(...events)).toEqual([]));

  it.each([
    ['a running call', calls(1), 'open 2 the model attempt of this reservation has not ended'],
    [
      'a call that is not settled yet',
      [...calls(1), callCompleted(1)],
      'open 3 the end of this model attempt is not settled yet',
    ],
    [
      'an estimate that is not corrected yet',
      [...calls(1), expired(1), callCompleted(1)],
      'open 4 the end of this model attempt is not corrected yet',
    ],
  ])('reports %s as open', (_, events, finding) => expect(ledger(...events)).toEqual([finding]));

  it.each([
    [
      'a charge that differs from the usage',
      [...calls(1), callCompleted(1), settled(1, { outputTokens: 11 })],
      'violation 4 charged 90 + 11 tokens, 420 micro-USD; the model attempt used 90 + 10 tokens, 420 micro-USD',
    ],
    [
      'a charge that counts cached input as other input',
      [
        callStarted(1),
        reserved(1, CACHED),
        callCompleted(1, { usage: CACHED_USAGE, costMicroUsd: 278 }),
        settled(1),
      ],
      'violation 4 charged 90 + 10 tokens, 420 micro-USD; the model attempt used 90 (60 read from a cache, 20 written) + 10 tokens, 278 micro-USD',
    ],
    [
      'a charge at another price',
      [...calls(1), callCompleted(1), settled(1, { microUsd: 421 })],
      'violation 4 charged 90 + 10 tokens, 421 micro-USD; the model attempt used 90 + 10 tokens, 420 micro-USD',
    ],
    [
      'an exact charge that is marked as an estimate',
      [...calls(1), callCompleted(1), settled(1, { estimated: true })],
      'violation 4 the charge is marked estimated=true, the usage estimated=false',
    ],
    [
      'a charge before the call ended',
      [...calls(1), settled(1), callCompleted(1)],
      'violation 3 a charge came before the end of its model attempt',
    ],
    [
      'a charge for an unsent call',
      [
        ...calls(1),
        callAborted(1, { dispatched: false }),
        settled(1, { inputTokens: 0, outputTokens: 0, microUsd: 0 }),
      ],
      'violation 4 a call that was never sent, or was refused by its provider, was charged',
    ],
    [
      'a charge for a refused call',
      [
        ...calls(1),
        callAborted(1, { refused: true, reason: 'provider_error' }),
        settled(1, { inputTokens: 100, outputTokens: 200, microUsd: 3_300, estimated: true }),
      ],
      'violation 4 a call that was never sent, or was refused by its provider, was charged',
    ],
    [
      'a lost call that is called refused',
      [...calls(1), callAborted(1, { refused: true, reason: 'driver_lost' }), released(1)],
      'violation 4 a call that was sent was not charged',
    ],
    [
      'a call that was not charged',
      [...calls(1), callCompleted(1), released(1)],
      'violation 4 a call that was sent was not charged',
    ],
    [
      'a release during the call',
      [...calls(1), released(1)],
      'violation 3 a reservation was released before the end of its model attempt',
    ],
    [
      'a call without a reservation',
      [callStarted(1), callCompleted(1)],
      'violation 2 model attempt 1 was sent without a reservation',
    ],
    [
      'a correction that differs from the usage',
      [...calls(1), expired(1), callCompleted(1), corrected(1, 12)],
      'violation 5 charged 90 + 12 tokens, 420 micro-USD; the model attempt used 90 + 10 tokens, 420 micro-USD',
    ],
    [
      'an expiry that differs from the bound',
      [...calls(1), expired(1, 1), callAborted(1)],
      'violation 3 expired at 1 tokens, 3300 micro-USD; its bound was 300, 3300',
    ],
    [
      'a reservation made for another attempt',
      [callStarted(1), reserved(1, { attempt: 7 }), callCompleted(1), settled(1)],
      `violation 3 reservation ${uuid(501)} was made for another attempt`,
    ],
    [
      'a wrong cost in the session',
      [...calls(1), callCompleted(1, { costMicroUsd: 1 }), settled(1)],
      'violation 3 the session records a cost of 1; by its price it is 420',
    ],
  ])('reports %s', (_, events, finding) => expect(ledger(...events)).toContain(finding));
});
