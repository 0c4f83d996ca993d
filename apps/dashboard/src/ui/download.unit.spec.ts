import { describe, expect, it } from '@jest/globals';
import { printCsv } from './download.js';

describe('a table as CSV', () => {
  it('quotes commas, quotes and line breaks, and leaves numbers as they are', () => {
    expect(
      printCsv(
        ['Name', 'Cost'],
        [
          ['a, "b"\nc', 1.5],
          [null, -2],
        ],
      ),
    ).toBe('Name,Cost\r\n"a, ""b""\nc",1.5\r\n,-2\r\n');
  });

  it('has no cell that a spreadsheet runs', () => {
    expect(printCsv(['Name'], [['=1+1'], ['@cmd'], ['+x'], ['-x']])).toBe(
      "Name\r\n'=1+1\r\n'@cmd\r\n'+x\r\n'-x\r\n",
    );
  });
});
