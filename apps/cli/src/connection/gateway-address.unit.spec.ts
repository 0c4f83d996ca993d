import { describe, expect, it } from '@jest/globals';
import { homeOf } from './gateway-address.js';

describe('homeOf', () => {
  it.each([
    ['unset', {}],
    ['empty', { ANTIPHON_HOME: '' }],
  ])('is .antiphon in the working directory when the variable is %s', (_, env) =>
    expect(homeOf(env, '/home/ada')).toBe('/home/ada/.antiphon'),
  );

  it('is the path in the variable, relative to the working directory', () => {
    expect(homeOf({ ANTIPHON_HOME: 'state' }, '/home/ada')).toBe('/home/ada/state');
    expect(homeOf({ ANTIPHON_HOME: '/var/antiphon' }, '/home/ada')).toBe('/var/antiphon');
  });
});
