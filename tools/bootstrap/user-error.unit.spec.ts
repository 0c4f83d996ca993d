import { describe, expect, it } from '@jest/globals';
import { explainSystemError, toUserError, UserError } from './user-error.mjs';

const withCode = (code: string): Error => Object.assign(new Error(`${code}: it failed`), { code });

describe('explainSystemError', () => {
  it('explains a full disk, also from a child process’s output', () => {
    expect(explainSystemError(withCode('ENOSPC'), 'the home /x')).toContain(
      'the disk that holds the home /x is full',
    );
    expect(explainSystemError(new Error('initdb: could not write: No space left on device'), '/x')).toContain(
      'is full',
    );
  });

  it.each(['EROFS', 'EACCES', 'EPERM'])('explains a path that cannot be written (%s)', (code) => {
    expect(explainSystemError(withCode(code), 'the home /x')).toBe(
      `the home /x cannot be written (${code}): make it writable for this user, or choose another place`,
    );
  });

  it.each(['EEXIST', 'ENOTDIR'])('explains a file where a folder is needed (%s)', (code) => {
    expect(explainSystemError(withCode(code), 'the home /x')).toBe(
      `the home /x cannot be used (${code}): there is a file where a folder is needed`,
    );
  });

  it('explains a place that takes no folders', () => {
    const error = Object.assign(withCode('ENOENT'), { syscall: 'mkdir' });
    expect(explainSystemError(error, 'the cache /proc/x')).toBe(
      'the cache /proc/x cannot be made (ENOENT): this place takes no folders, so choose another one',
    );
  });

  it('returns other errors unchanged', () => {
    const error = withCode('ENOENT');
    expect(explainSystemError(error, '/x')).toBeNull();
    expect(toUserError(error, '/x')).toBe(error);
    expect(toUserError(withCode('ENOSPC'), '/x')).toBeInstanceOf(UserError);
  });
});
