import { describe, expect, it } from '@jest/globals';
import { activeLayers, assertLayers, LAYERS, parseRequiredLayers } from './isolation.js';
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

describe('required layers', () => {
  const cell = (facts: Partial<CellFacts>) => {
    const killed: boolean[] = [];
    return { facts: { ...ISOLATED, ...facts }, kill: () => void killed.push(true), killed };
  };

  it('are none, a list, or all', () => {
    expect([undefined, '', 'all'].map(parseRequiredLayers)).toEqual([[], [], LAYERS]);
    expect(parseRequiredLayers('network, user')).toEqual(['network', 'user']);
  });

  it('of an unknown name are refused, because a typing error must not leave one out', () =>
    expect(() => parseRequiredLayers('netwrok')).toThrow(
      expect.objectContaining({ code: 'SERVICE.BAD_ENVIRONMENT' }),
    ));

  it('end a cell that runs without one of them', () => {
    const planned: Layer[] = ['network', 'user', 'limits', 'dies-with-service'];
    const whole = cell({});
    assertLayers({ planned }, whole, LAYERS);
    const open = cell({ interfaces: ['lo', 'eth0'] });
    expect(() => assertLayers({ planned }, open, ['network'])).toThrow(
      expect.objectContaining({ code: 'SANDBOX.LAYER_MISSING' }),
    );
    expect(() => assertLayers({ planned: [] }, whole, ['limits'])).toThrow('limits');
    expect([open.killed, whole.killed]).toEqual([[true], [true]]);
    assertLayers({ planned: [] }, open, []);
  });
});
