import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { checkRemoval, countLines, editAll, editBytes } from './edit-text.js';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const hash = (value: Uint8Array): string => createHash('sha256').update(value).digest('hex');
const codeOf = (work: () => unknown): string => {
  try {
    work();
    return 'applied';
  } catch (error) {
    return (error as { code: string }).code;
  }
};

/** Text around the edited part: each is a form that tools have damaged. */
const FRAMES: readonly (readonly [string, string, string])[] = [
  ['LF', 'first\n', '\nlast\n'],
  ['CRLF', 'first\r\n', '\r\nlast\r\n'],
  ['mixed ends', 'first\r\nsecond\n', '\r\nlast\n'],
  ['CR only', 'first\r', '\rlast\r'],
  ['no line end at the end', 'first\n', '\nlast'],
  ['many line ends at the end', 'first\n', '\n\n\n\n'],
  ['tabs', '\tfirst\n\t\t', '\n\tlast\n'],
  ['trailing blanks', 'first   \n', '  \nlast \t\n'],
  ['a byte order mark', '\ufefffirst\n', '\nlast\n'],
  ['NFC', 'caf\u00e9\n', '\nna\u00efve\n'],
  ['NFD', 'cafe\u0301\n', '\nnai\u0308ve\n'],
  ['emoji', '👩‍💻🇨🇭\n', '\n🎌\n'],
  ['zeros', 'a\u0000b\n', '\n\u0000'],
  ['form feeds', 'a\f\v\n', '\n\u2028\u0085'],
  ['nothing', '', ''],
];
const EDITS: readonly (readonly [string, string])[] = [
  ['target', 'changed'],
  ['target line', ''],
  ['tärget', 'target'],
  ['ta\u0308rget', 'ta\u0308rgets'],
  ['if (x) {\n\treturn $1;\n}', 'if (y) {\n\treturn $&;\n}'],
  ['a.b*c', "$`$'"],
  ['  indented', '\tindented'],
  ['“quoted”', '"quoted"'],
  ['世界', 'world 🌍'],
  ['x\r\ny', 'x\ny'],
  ['trailing ', 'trailing'],
  ['\u0000zero', 'zero'],
];
const CASES = FRAMES.flatMap(([frame, before, after]) =>
  EDITS.flatMap(([old, text]) => [
    { name: `${frame}: ${JSON.stringify(old)}`, before, after, old, text },
    { name: `${frame}, back: ${JSON.stringify(old)}`, before, after, old: text, text: old },
  ]),
).filter(({ old }) => old !== '');

describe('An exact edit', () => {
  // @shows chats-C6
  it('is shown by at least 300 cases', () => expect(CASES.length).toBeGreaterThanOrEqual(300));

  // @shows U40 U41
  it.each(CASES)('changes only its span: $name', ({ before, after, old, text }) => {
    expect(hash(editBytes(bytes(`${before}${old}${after}`), { old, new: text }))).toBe(
      hash(bytes(`${before}${text}${after}`)),
    );
  });

  // @shows U42
  it('keeps bytes that are no UTF-8', () => {
    const file = Uint8Array.of(0xff, 0x80, 0x61, 0xc3, 0x9f);
    expect([...editBytes(file, { old: 'a', new: 'bc' })]).toEqual([0xff, 0x80, 0x62, 0x63, 0xc3, 0x9f]);
  });

  // @shows chats-C6
  it('finds its place in a file of 50 MB and in a line of 10 MB', () => {
    const large = new Uint8Array(50_000_000).fill(97);
    large.set(bytes('needle'), 40_000_000);
    const expected = new Uint8Array(49_999_995).fill(97);
    expected.set(bytes('n'), 40_000_000);
    expect(Buffer.compare(editBytes(large, { old: 'needle', new: 'n' }), expected)).toBe(0);
    const line = new Uint8Array(10_000_002).fill(98);
    line.set(bytes('\n'), 0);
    line.set(bytes('\n'), 10_000_001);
    line.set(bytes('needle'), 5_000_000);
    const edited = Uint8Array.from(line);
    edited.set(bytes('thread'), 5_000_000);
    expect(Buffer.compare(editBytes(line, { old: 'needle', new: 'thread' }), edited)).toBe(0);
  });

  // @shows chats-C6
  it('is refused where the text occurs never or more than once, also where places overlap', () => {
    expect(codeOf(() => editBytes(bytes('abc'), { old: 'x', new: 'y' }))).toBe('FILE.NO_MATCH');
    expect(codeOf(() => editBytes(bytes('a\na\n'), { old: 'a', new: 'y' }))).toBe('FILE.AMBIGUOUS');
    expect(codeOf(() => editBytes(bytes('aaa'), { old: 'aa', new: 'y' }))).toBe('FILE.AMBIGUOUS');
    expect(() => editBytes(bytes('a\nb\na\n'), { old: 'a', new: 'y' })).toThrow('lines 1, 3');
  });

  // @shows chats-C6 U41 U43
  it.each([
    ['line endings', 'one\r\ntwo\r\n', 'one\ntwo'],
    ['tabs and spaces', '\tone\n\ttwo\n', '    one\n    two'],
    ['Unicode form', 'caf\u00e9 one\n', 'cafe\u0301 one'],
    ['quotes', 'say “one”\n', 'say "one"'],
    ['end of a line', 'one \ntwo\n', 'one\ntwo'],
    ['capital letters', 'One Two\n', 'one two'],
  ])('names a difference that is not visible, and changes nothing: %s', (name, file, old) => {
    const before = bytes(file);
    expect(() => editBytes(before, { old, new: 'x' })).toThrow(
      expect.objectContaining({
        message: expect.stringContaining(name),
        data: expect.objectContaining({ lines: [1] }),
      }),
    );
    expect(before).toEqual(bytes(file));
  });

  it('applies several edits in order, or none', () => {
    const edits = [
      { old: 'a', new: 'b1' },
      { old: 'b1', new: 'c' },
    ];
    expect(editAll(bytes('a'), edits)).toEqual(bytes('c'));
    expect(codeOf(() => editAll(bytes('a'), [...edits, { old: 'z', new: 'y' }]))).toBe('FILE.NO_MATCH');
  });

  // @shows chats-C7
  it('keeps prefix and suffix of random bytes', () => {
    let seed = 42;
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % below;
    };
    for (let round = 0; round < 2_000; round++) {
      const prefix = Uint8Array.from({ length: random(60) }, () => random(256) & 0x7f);
      const suffix = Uint8Array.from({ length: random(60) }, () => 0x80 | random(128));
      const old = `<<${round}>>`;
      const text = 'x'.repeat(random(9));
      const file = Uint8Array.from([...prefix, ...bytes(old), ...suffix]);
      const edited = editBytes(file, { old, new: text });
      expect([edited.subarray(0, prefix.length), edited.subarray(prefix.length + text.length)]).toEqual([
        prefix,
        suffix,
      ]);
    }
  });

  // @shows chats-C9
  it('needs the number of lines to remove over half of a long file', () => {
    const long = bytes('line\n'.repeat(60));
    expect(countLines(long)).toBe(60);
    expect(codeOf(() => checkRemoval('a', long, bytes('x\n')))).toBe('FILE.LARGE_REMOVAL');
    expect(codeOf(() => checkRemoval('a', long, bytes('x\n'), 59))).toBe('applied');
    expect(codeOf(() => checkRemoval('a', bytes('line\n'.repeat(50)), bytes('')))).toBe('applied');
  });
});
