import { describe, expect, it } from '@jest/globals';
import { createUpcast } from './upcast.js';

const upcast = createUpcast([
  { type: 'Priced', from: 2, up: ({ cents, ...rest }) => ({ ...rest, microUsd: Number(cents) * 10_000 }) },
  { type: 'Priced', from: 1, up: ({ dollars, ...rest }) => ({ ...rest, cents: Number(dollars) * 100 }) },
  { type: 'Other', from: 1, up: (data) => ({ ...data, other: true }) },
]);

describe('upcasting', () => {
  it('converts content through every version after the stored one', () => {
    const event = { type: 'Priced', schemaVersion: 1, data: { dollars: 2, by: 'ann' }, position: 7 };
    expect(upcast(event)).toEqual({
      type: 'Priced',
      schemaVersion: 3,
      data: { microUsd: 2_000_000, by: 'ann' },
      position: 7,
    });
    expect(upcast({ type: 'Priced', schemaVersion: 2, data: { cents: 5 } }).data).toEqual({
      microUsd: 50_000,
    });
  });

  it('does not change the stored event, because its hash covers the stored version', () => {
    const event = { type: 'Priced', schemaVersion: 1, data: { dollars: 2 } };
    upcast(event);
    expect(event).toEqual({ type: 'Priced', schemaVersion: 1, data: { dollars: 2 } });
  });

  it.each([
    { type: 'Priced', schemaVersion: 3, data: { microUsd: 1 } },
    { type: 'Priced', schemaVersion: 9, data: {} },
    { type: 'Unknown', schemaVersion: 1, data: {} },
  ])('answers what no step begins at as it is: $type in form $schemaVersion', (event) => {
    expect(upcast(event)).toBe(event);
  });

  it('refuses two steps from one version', () => {
    const step = { type: 'Priced', from: 1, up: (data: object) => ({ ...data }) };
    expect(() => createUpcast([step, step])).toThrow('two upcasters convert Priced from schema version 1');
  });
});
