import { describe, expect, it } from '@jest/globals';
import { formOf, lineEndOf, MAX_IMAGE_BYTES, readContent, readCsv } from './file-content.js';

const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a];
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('the content of a file', () => {
  it('is an image by its first bytes, under any name, and only up to 2 MiB', () => {
    expect(readContent(new Uint8Array(PNG))).toMatchObject({ kind: 'image', media: 'image/png' });
    const large = new Uint8Array(MAX_IMAGE_BYTES + 1);
    large.set(PNG);
    expect(readContent(large)).toEqual({ kind: 'bytes' });
    expect(readContent(bytesOf('<svg onload="alert(1)"/>'))).toMatchObject({ kind: 'text' });
  });

  it('is text if it is UTF-8 without a zero byte, and keeps its mark of the byte order', () => {
    expect(readContent(bytesOf('\ufeffé'))).toEqual({ kind: 'text', text: '\ufeffé' });
    expect(readContent(new Uint8Array([0x61, 0]))).toEqual({ kind: 'bytes' });
    expect(readContent(new Uint8Array([0xc3, 0x28]))).toEqual({ kind: 'bytes' });
    expect(readContent(new Uint8Array())).toEqual({ kind: 'text', text: '' });
  });

  it('has the line ending of all its lines, or line feeds', () => {
    expect(lineEndOf('a\r\nb\r\n')).toBe('\r\n');
    expect([lineEndOf('a\nb\r\n'), lineEndOf('a'), lineEndOf('')]).toEqual(['\n', '\n', '\n']);
  });

  it('has a form by the name of the file', () => {
    expect(['a.MD', 'b.csv', 'c.ts', 'talk.chat'].map(formOf)).toEqual([
      'markdown',
      'table',
      'code',
      'markdown',
    ]);
  });
});

describe('a table of CSV', () => {
  it('has quoted separators, line ends and quotes in its cells', () => {
    expect(readCsv('a,"b,1"\r\n"x\ny","say ""hi"""').rows).toEqual([
      ['a', 'b,1'],
      ['x\ny', 'say "hi"'],
    ]);
  });

  it('finds semicolons and tabs as separators', () => {
    expect(readCsv('a;b\n1;2').rows).toEqual([
      ['a', 'b'],
      ['1', '2'],
    ]);
    expect(readCsv('a\tb,c').rows).toEqual([['a', 'b,c']]);
  });

  it('says that rows are left out', () => {
    expect(readCsv('1\n2\n3\n', 2)).toEqual({ rows: [['1'], ['2']], isCut: true });
    expect(readCsv('1\n2\n', 2).isCut).toBe(false);
    expect(readCsv('').rows).toEqual([]);
  });
});
