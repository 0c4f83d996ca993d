import { describe, expect, it } from '@jest/globals';
import { activeLayers } from './wall.js';
import type { Layer } from './wall.js';
import type { CellFacts } from './protocol.js';

const WALLED: CellFacts = { uid: 65_533, interfaces: [], fileAccess: false };
const layers = (planned: readonly Layer[], facts: Partial<CellFacts> = {}) =>
  activeLayers({ planned }, { ...WALLED, ...facts });

describe('the layers of a wall', () => {
  it('are all there when the plan worked and the cell finds it so', () =>
    expect(layers(['network', 'user', 'limits', 'dies-with-service'])).toEqual([
      ...['process', 'files', 'network', 'user', 'limits', 'dies-with-service'],
    ]));

  it('are what a cell finds, whatever was planned', () =>
    expect(layers(['network', 'user'], { uid: 0, interfaces: ['lo'], fileAccess: true })).toEqual([
      'process',
    ]));

  it('do not count a user namespace, which shows nobody for every user', () =>
    expect(layers(['network'], { uid: 65_534 })).not.toContain('user'));

  it('count on the plan where a cell cannot tell', () =>
    expect(layers([])).toEqual(['process', 'files', 'network', 'user']));
});
