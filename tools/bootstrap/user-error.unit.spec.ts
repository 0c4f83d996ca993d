import { describe, expect, it } from '@jest/globals';
import { explainSystemError, toUserError, UserError } from './user-error.mjs';

const withCode = (code: string): Error => Object.assign(new Error(`${code}: it failed`), { code });

describe('what a system error means', () => {
  it('names a full disk, also in the words of a child process', () => {
    expect(explainSystemError(withCode('ENOSPC'), 'the home /x')).toContain(
      'the disk that holds the home /x is full',
    );
    expect(explainSystemError(new Error('initdb: could not write: No space left on device'), '/x')).toContain(
      'is full',
    );
  });

  it.each(['EROFS', 'EACCES', 'EPERM'])('names a place that cannot be written (%s)', (code) => {
    expect(explainSystemError(withCode(code), 'the home /x')).toBe(
      `the home /x cannot be written (${code}): make it writable for this user, or choose another place`,
    );
  });

  it.each(['EEXIST', 'ENOTDIR'])('names a file where a folder is needed (%s)', (code) => {
    expect(explainSystemError(withCode(code), 'the home /x')).toBe(
      `the home /x cannot be used (${code}): there is a file where a folder is needed`,
    );
  });

  it('leaves everything else as it is', () => {
    const error = withCode('ENOENT');
    expect(explainSystemError(error, '/x')).toBeNull();
    expect(toUserError(error, '/x')).toBe(error);
    expect(toUserError(withCode('ENOSPC'), '/x')).toBeInstanceOf(UserError);
  });
});
