import { describe, expect, it } from '@jest/globals';
import { homeOf } from './gateway-address.js';

describe('the home of an installation', () => {
  it.each([
    ['unset', {}],
    ['empty, which the two commands take for unset', { ANTIPHON_HOME: '' }],
  ])('is .antiphon beside the caller when the variable is %s', (_, env) =>
    expect(homeOf(env, '/somewhere')).toBe('/somewhere/.antiphon'),
  );

  it('is where the variable says, from where the caller stands', () => {
    expect(homeOf({ ANTIPHON_HOME: 'state' }, '/somewhere')).toBe('/somewhere/state');
    expect(homeOf({ ANTIPHON_HOME: '/var/antiphon' }, '/somewhere')).toBe('/var/antiphon');
  });
});
