import { AppError, providerFailed, transient } from '@antiphon/kernel';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { createOutput, exitCodeOf } from './output.js';

const print = async (error: unknown): Promise<string> => {
  let printed = '';
  const write = jest.spyOn(process.stderr, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  await createOutput(false).failure(error);
  write.mockRestore();
  return printed;
};

afterEach(() => void jest.restoreAllMocks());

describe('a failure on the command line', () => {
  it('shows the message, the code and what to check when a provider is unreachable', async () => {
    const message = 'provider unreachable: http://127.0.0.1:9 refused the connection';
    const text = await print(providerFailed('PROVIDER.UNREACHABLE', message));
    expect(text).toMatch(
      /^antiphon: provider unreachable: http:\/\/127\.0\.0\.1:9 .* \(PROVIDER\.UNREACHABLE\)\n/,
    );
    expect(text).toContain('What to do: check that the provider runs');
  });

  it('shows the message alone when it says what to do', async () =>
    expect(await print(new Error('no such file'))).toBe('antiphon: no such file\n'));

  it.each([
    ['CLI.UNREACHABLE', transient('CLI.UNREACHABLE', ''), 3],
    ['CLI.USAGE', new AppError('invalid', 'CLI.USAGE', ''), 2],
    ['CONFIG.INVALID', new AppError('invalid', 'CONFIG.INVALID', ''), 2],
    ['a budget', new AppError('exhausted', 'BUDGET.EXCEEDED', ''), 4],
    ['a failed turn', providerFailed('PROVIDER.ERROR', ''), 1],
    ['an unknown error', new Error(''), 1],
  ])('sets the exit code of %s', (_, error, code) => expect(exitCodeOf(error)).toBe(code));
});
