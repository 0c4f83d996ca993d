import { describe, expect, it } from '@jest/globals';
import { DeliveryLedger } from './delivery-ledger.js';

describe('delivery ledger', () => {
  it('counts only failures of the message itself', () => {
    const ledger = new DeliveryLedger();
    expect(ledger.countFailures(7, 3)).toBe(3);
    ledger.excuse(7);
    ledger.excuse(7);
    expect(ledger.countFailures(7, 3)).toBe(1);
    ledger.settle('s', 7);
    expect(ledger.countFailures(7, 3)).toBe(3);
  });

  it('holds later messages of the same subject behind a waiting one', () => {
    const ledger = new DeliveryLedger();
    ledger.hold('s', 5, 2_000, 9_000);
    expect(ledger.holdTime('s', 6, 1_000)).toBe(1_000);
    expect(ledger.holdTime('s', 5, 1_000)).toBe(0);
    expect(ledger.holdTime('s', 4, 1_000)).toBe(0);
    expect(ledger.holdTime('other', 6, 1_000)).toBe(0);
    ledger.settle('s', 5);
    expect(ledger.holdTime('s', 6, 1_000)).toBe(0);
  });

  it('keeps the order of held messages', () => {
    const ledger = new DeliveryLedger();
    ledger.hold('s', 5, 1_000, 9_000);
    ledger.hold('s', 6, 1_000, 9_000);
    ledger.settle('s', 5);
    expect(ledger.holdTime('s', 7, 2_000)).toBeGreaterThan(0);
    expect(ledger.holdTime('s', 6, 2_000)).toBe(0);
  });

  it('ends a hold once another process may have the message', () => {
    const ledger = new DeliveryLedger();
    ledger.hold('s', 5, 2_000, 9_000);
    expect(ledger.holdTime('s', 6, 9_000)).toBe(0);
  });
});
