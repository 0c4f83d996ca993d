import { describe, expect, it } from '@jest/globals';
import { explainUngrantable, grantedHosts } from './capabilities.js';

describe('capabilities', () => {
  it('accepts none, or hosts', () => {
    expect(explainUngrantable([])).toBeNull();
    expect(explainUngrantable(['http:api.example.com'])).toBeNull();
    expect(explainUngrantable(['secret:token', 'http:api.example.com'])).toBeNull();
    expect(grantedHosts(['http:API.example.com', 'http:b.example:8443/v1', 'log'])).toEqual(
      new Set(['api.example.com', 'b.example:8443/v1']),
    );
  });

  it.each([
    ['secret:token', 'needs one http:HOST'],
    ['secret:Not A Name', 'is not the name of a secret'],
    ['sekret:token', 'did you mean secret?'],
    ['gpu:0', 'unknown capability type "gpu"'],
    ['clok', 'did you mean clock?'],
    ['htpp:api.example.com', 'did you mean http?'],
    ['', 'unknown capability type ""'],
  ])('refuses %s with a reason', (capability, reason) =>
    expect(explainUngrantable([capability])).toContain(reason),
  );
});
