import { describe, expect, it } from '@jest/globals';
import { nameOfText } from './chat-name.js';
import { nameForUpload, uploadPath } from './upload-name.js';

describe('the name of an upload', () => {
  it('is one part of a path without hidden characters', () => {
    expect(nameForUpload('../../etc/passwd')).toBe('_.._etc_passwd');
    expect(nameForUpload('a\u202Etxt.exe')).toBe('a_txt.exe');
    expect(nameForUpload('...')).toBe('file');
    expect(nameForUpload(`${'x'.repeat(300)}.md`)).toHaveLength(120);
  });

  it('gets a number before its ending where the name is taken', () => {
    expect(uploadPath('notes.md', 1)).toBe('uploads/notes.md');
    expect(uploadPath('notes.md', 2)).toBe('uploads/notes-2.md');
    expect(uploadPath('Makefile', 3)).toBe('uploads/Makefile-3');
  });
});

describe('the name of a chat', () => {
  it('is the first line of its first message, cut between words', () => {
    expect(nameOfText('\n  Tides of June  \nmore')).toBe('Tides of June');
    expect(nameOfText(`${'word '.repeat(30)}end`)).toBe('word '.repeat(12).trim());
    expect(nameOfText('a/b\\c')).toBe('a b c');
    expect(nameOfText('...hidden')).toBe('hidden');
    expect(nameOfText(' \n ')).toBe('');
    expect(nameOfText('😀'.repeat(60)).isWellFormed()).toBe(true);
  });
});
