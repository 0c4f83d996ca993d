import { describe, expect, it } from '@jest/globals';
import { activeLayers } from './isolation.js';
import type { Layer } from './isolation.js';
import type { CellFacts } from './protocol.js';

const ISOLATED: CellFacts = { uid: 65_533, interfaces: [], fileAccess: false };
const layers = (planned: readonly Layer[], facts: Partial<CellFacts> = {}) =>
  activeLayers({ planned }, { ...ISOLATED, ...facts });

describe('activeLayers', () => {
  it('returns all layers that were planned and that the cell confirms', () =>
    expect(layers(['network', 'user', 'limits', 'dies-with-service'])).toEqual([
      ...['process', 'files', 'network', 'user', 'limits', 'dies-with-service'],
    ]));

  it('omits planned layers that the cell does not confirm', () =>
    expect(layers(['network', 'user'], { uid: 0, interfaces: ['lo'], fileAccess: true })).toEqual([
      'process',
    ]));

  it('omits the user layer for the user of a user namespace', () =>
    expect(layers(['network'], { uid: 65_534 })).not.toContain('user'));

  it('omits unplanned layers that a cell cannot check', () =>
    expect(layers([])).toEqual(['process', 'files', 'network', 'user']));
});
