import { describe, expect, it } from '@jest/globals';
import { causeOf, messageOf, textCause, textOf } from './causes.js';
import type { Cause } from './causes.js';
import { Cause as CauseSchema } from './stored-event.js';

const lost: Cause = { kind: 'work_processes_lost', processes: 3 };
const nested: Cause = {
  kind: 'tool_outcome_unknown',
  why: { kind: 'failed_with', code: 'TOOL.TRAP', why: { kind: 'tool_trapped', detail: 'unreachable' } },
};

describe('the cause of a fact', () => {
  it('is the one that an error of this process has', () => {
    expect(causeOf(new Error(textOf(lost), { cause: lost }))).toBe(lost);
  });

  it.each([
    ['no cause', undefined],
    ['another error as its cause', new Error('the pool is closed')],
    ['a cause of a library', { syscall: 'connect' }],
  ])('is the message of an error with %s', (_, cause) => {
    expect(causeOf(new Error('it was refused', { cause }))).toEqual(textCause('it was refused'));
  });

  it('may have a cause that has one itself, and is read in full', () => {
    expect(CauseSchema.parse(nested)).toEqual(nested);
    expect(textOf(nested)).toBe(
      'TOOL.TRAP: the tool trapped: unreachable; whether the tool acted is unknown, and it was not run again',
    );
  });

  it('is the text of the first schema version, where a fact has no cause', () => {
    expect([messageOf({ message: 'old' }), messageOf({ cause: lost }), messageOf({})]).toEqual([
      'old',
      textOf(lost),
      '',
    ]);
  });
});
