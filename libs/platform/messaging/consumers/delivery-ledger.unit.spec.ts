import { describe, expect, it } from '@jest/globals';
import { createDeliveryLedger } from './delivery-ledger.js';

describe('delivery ledger', () => {
  it('counts against a message only what was its own fault', () => {
    const ledger = createDeliveryLedger();
    expect(ledger.counted(7, 3)).toBe(3);
    ledger.excuse(7);
    ledger.excuse(7);
    expect(ledger.counted(7, 3)).toBe(1);
    ledger.settle('s', 7);
    expect(ledger.counted(7, 3)).toBe(3);
  });

  it('holds back what follows a message that waits, in its subject alone', () => {
    const ledger = createDeliveryLedger();
    ledger.hold('s', 5, 2_000, 9_000);
    expect(ledger.heldFor('s', 6, 1_000)).toBe(1_000);
    expect(ledger.heldFor('s', 5, 1_000)).toBe(0);
    expect(ledger.heldFor('s', 4, 1_000)).toBe(0);
    expect(ledger.heldFor('other', 6, 1_000)).toBe(0);
    ledger.settle('s', 5);
    expect(ledger.heldFor('s', 6, 1_000)).toBe(0);
  });

  it('keeps the order among those that were held back', () => {
    const ledger = createDeliveryLedger();
    ledger.hold('s', 5, 1_000, 9_000);
    ledger.hold('s', 6, 1_000, 9_000);
    ledger.settle('s', 5);
    expect(ledger.heldFor('s', 7, 2_000)).toBeGreaterThan(0);
    expect(ledger.heldFor('s', 6, 2_000)).toBe(0);
  });

  it('lets go when the one that was waited for must be elsewhere', () => {
    const ledger = createDeliveryLedger();
    ledger.hold('s', 5, 2_000, 9_000);
    expect(ledger.heldFor('s', 6, 9_000)).toBe(0);
  });
});
