import { describe, expect, it } from '@jest/globals';
import { homeOf } from './gateway-address.js';

describe('homeOf', () => {
  it.each([
    ['unset', {}],
    ['empty', { ANTIPHON_HOME: '' }],
  ])('is .antiphon in the working directory when the variable is %s', (_, env) =>
    expect(homeOf(env, '/somewhere')).toBe('/somewhere/.antiphon'),
  );

  it('is the path in the variable, relative to the working directory', () => {
    expect(homeOf({ ANTIPHON_HOME: 'state' }, '/somewhere')).toBe('/somewhere/state');
    expect(homeOf({ ANTIPHON_HOME: '/var/antiphon' }, '/somewhere')).toBe('/var/antiphon');
  });
});
