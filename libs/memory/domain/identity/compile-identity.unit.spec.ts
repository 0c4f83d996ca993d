import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  IDENTITY_FILES,
  MAX_IDENTITY_TOKENS,
  MAX_SOUL_TOKENS,
  compileIdentity,
  estimateTokens,
} from '@antiphon/memory-domain';
import type { IdentityDocument } from '@antiphon/memory-domain';

const compile = (texts: Partial<Record<'soul' | 'agent' | 'identity' | 'user', string>>) =>
  compileIdentity(
    Object.entries(texts).map(([name, text]) => ({
      file: `${name.toUpperCase()}.md` as IdentityDocument['file'],
      text,
    })),
  );
const packetOf = (texts: Parameters<typeof compile>[0]) => compile(texts).packet?.text;

describe('an identity', () => {
  it('of one document is that document', () => {
    const text = '# Ada\n\nYou are Ada.\n\n## Values\n\n- be kind\n- be brief\n\n### Why\n\nBecause.';
    expect(compile({ soul: `\ufeff${text.replaceAll('\n', '\r\n')}\r\n\r\n` })).toEqual({
      packet: { text, tokens: estimateTokens(text) },
      conflicts: [],
      clipped: [],
      problems: [],
    });
  });

  it('has its documents in the order of precedence, each with its title', () =>
    expect(
      packetOf({
        user: 'She writes Rust.',
        identity: '# Identity\n\nA lighthouse.',
        agent: 'You review code.',
        soul: 'You are kind.',
      }),
    ).toBe(
      'You are kind.\n\n# Agent\n\nYou review code.\n\n# Identity\n\nA lighthouse.\n\n# User\n\nShe writes Rust.',
    ));

  it('takes a section from the first document and reports the overridden one', () => {
    const { packet, conflicts } = compile({
      user: '# User\n\n## tone:\n\nShout.\n\n## Work\n\nRust.',
      soul: '# Soul\n\n## Tone\n\nSpeak softly.',
    });
    expect(packet?.text).toBe('# Soul\n\n## Tone\n\nSpeak softly.\n\n# User\n\n## Work\n\nRust.');
    expect(conflicts).toEqual([{ section: 'tone', key: null, kept: 'SOUL.md', dropped: 'USER.md' }]);
  });

  it.each([
    ['SOUL.md', 'AGENT.md'],
    ['SOUL.md', 'USER.md'],
    ['AGENT.md', 'IDENTITY.md'],
    ['IDENTITY.md', 'USER.md'],
  ] as const)('lets %s win over %s', (winner, loser) => {
    const text = (file: string) => `## Role\n\nas ${file} says`;
    const { packet, conflicts } = compileIdentity([
      { file: loser, text: text(loser) },
      { file: winner, text: text(winner) },
    ]);
    expect(packet?.text).toContain(`as ${winner} says`);
    expect(packet?.text).not.toContain(`as ${loser} says`);
    expect(conflicts).toEqual([{ section: 'role', key: null, kept: winner, dropped: loser }]);
  });

  it('merges single keys where a section has only keys', () => {
    const { packet, conflicts } = compile({
      soul: '## Basics\n\n- **Name:** Ada\n- Language: English',
      identity: '## Basics\n\n- name: Bob\n- **Emoji**: a wave\n- Language:   English',
    });
    expect(packet?.text).toBe(
      '## Basics\n\n- **Name:** Ada\n- Language: English\n\n# Identity\n\n## Basics\n- **Emoji**: a wave',
    );
    expect(conflicts).toEqual([{ section: 'basics', key: 'name', kept: 'SOUL.md', dropped: 'IDENTITY.md' }]);
  });

  it('merges front matter as keys with their lines', () => {
    const { packet, conflicts, problems } = compile({
      soul: '---\nname: Ada\n# a comment\ntraits:\n  - kind\n  - brief\n---\n\nYou are Ada.',
      user: '---\nname: Bob\ncity: Oslo\n---\n',
    });
    expect(packet?.text).toBe(
      'name: Ada\ntraits:\n  - kind\n  - brief\n\nYou are Ada.\n\n# User\n\ncity: Oslo',
    );
    expect(conflicts).toEqual([{ section: '', key: 'name', kept: 'SOUL.md', dropped: 'USER.md' }]);
    expect(problems).toEqual([]);
  });

  it('reports a repetition within one document', () =>
    expect(compile({ soul: '# Rules\n\nOne.\n\n# Rules\n\nTwo.' }).conflicts).toEqual([
      { section: 'rules', key: null, kept: 'SOUL.md', dropped: 'SOUL.md' },
    ]));

  it('contains once what two documents agree on', () => {
    const { packet, conflicts } = compile({ soul: '## Tone\n\nSoft.', agent: '## Tone\n\n  Soft.  \n' });
    expect(packet?.text).toBe('## Tone\n\nSoft.');
    expect(conflicts).toEqual([]);
  });

  it('distinguishes sections of one name by their parent headings', () => {
    const { conflicts } = compile({
      soul: '## Work\n\n### Tone\n\nDry.\n\n## Home\n\n### Tone\n\nWarm.',
      user: '## Work\n\n### Tone\n\nLoud.',
    });
    expect(conflicts).toEqual([{ section: 'work / tone', key: null, kept: 'SOUL.md', dropped: 'USER.md' }]);
  });

  it('ignores headings in code blocks and closes an open block', () => {
    const { packet, conflicts, problems } = compile({
      soul: 'Run:\n\n```sh\n# Tone\nls\n',
      user: '## Tone\n\nSoft.',
    });
    expect(packet?.text).toBe('Run:\n\n```sh\n# Tone\nls\n```\n\n# User\n\n## Tone\n\nSoft.');
    expect(conflicts).toEqual([]);
    expect(problems).toEqual([{ file: 'SOUL.md', problem: expect.stringContaining('code fence') }]);
  });

  it('takes headings after the 2,000th one as text', () => {
    const headings = Array.from({ length: 2_001 }, (_, n) => `## Part ${n}\n\nText ${n}.`).join('\n\n');
    const { conflicts, problems } = compile({
      soul: headings,
      user: '## Part 1999\n\nOther.\n\n## Part 2000\n\nOther.',
    });
    expect(problems).toEqual([{ file: 'SOUL.md', problem: expect.stringContaining('2000 headings') }]);
    expect(conflicts).toEqual([{ section: 'part 1999', key: null, kept: 'SOUL.md', dropped: 'USER.md' }]);
  });

  it.each([
    [2_000, 'key 0'],
    [2_001, null],
  ])('of %s key lines has keys that can differ: %j', (count, key) => {
    const soul = Array.from({ length: count }, (_, n) => `Key ${n}: x`).join('\n');
    const { conflicts } = compile({ soul, user: 'Key 0: y' });
    expect(conflicts).toEqual(key === null ? [] : [expect.objectContaining({ key, kept: 'SOUL.md' })]);
  });

  it('reads underlined headings', () =>
    expect(
      compile({ soul: 'Tone\n====\n\nSoft.\n\nWork\n----\n\nRust.', user: '## Work\n\nGo.' }),
    ).toMatchObject({
      conflicts: [{ section: 'work', kept: 'SOUL.md' }],
    }));

  it.each([
    ['---\nname: Ada\nYou are Ada.', 'does not end'],
    ['---\nname: Ada\nYou are Ada.\n---\n', 'is not `key: value` lines'],
  ])('treats unreadable front matter as text: %j', (soul, problem) =>
    expect(compile({ soul })).toMatchObject({
      packet: { text: expect.stringContaining('Ada') },
      problems: [{ file: 'SOUL.md', problem: expect.stringContaining(problem) }],
    }),
  );

  it.each([[{}], [{ soul: '' }], [{ soul: ' \r\n\t', user: '# User\n' }]])(
    'of nothing is none: %j',
    (texts) => expect(compile(texts)).toMatchObject({ packet: null, conflicts: [] }),
  );

  it('clips long documents at a line and notes it in the packet', () => {
    const soul = Array.from({ length: 400 }, (_, n) => `- rule number ${n}`).join('\n');
    const { packet, clipped } = compile({ soul, user: 'She writes Rust.' });
    const [clip] = clipped;
    expect(clip).toMatchObject({ file: 'SOUL.md', totalTokens: estimateTokens(soul) });
    expect(packet?.text).toContain(
      `[SOUL.md is clipped here: ${clip?.keptTokens} of ${clip?.totalTokens} tokens]`,
    );
    expect(packet?.text).toMatch(/rule number \d+\n\n\[SOUL.*\n\n# User\n\nShe writes Rust\.$/);
    expect(packet?.tokens).toBeLessThanOrEqual(MAX_SOUL_TOKENS + 20);
  });

  it.each([
    ['an endless heading over many others', `# ${'x'.repeat(100_000)}\n${'## a\n'.repeat(10_000)}`],
    ['a heading of nothing but marks', `# ${'#:'.repeat(100_000)}x\n\ntext`],
    ['blanks without end', `${' \t'.repeat(100_000)}x`],
    ['fences without end', '```\n~~~\n'.repeat(20_000)],
    ['front matter without end', `---\n${'a: b\n'.repeat(40_000)}`],
    ['keys without end', '- a: b\n- c: d\n'.repeat(15_000)],
  ])('is compiled within the time limit from %s', (_what, text) => {
    const started = performance.now();
    expect(compile({ soul: text, user: text }).packet?.tokens ?? 0).toBeLessThanOrEqual(MAX_IDENTITY_TOKENS);
    expect(performance.now() - started).toBeLessThan(3_000);
  });

  it('clips one long line between characters', () => {
    const { packet } = compile({ soul: '😀'.repeat(5_000) });
    expect(packet?.text.isWellFormed()).toBe(true);
    expect(packet?.tokens).toBeLessThanOrEqual(MAX_SOUL_TOKENS);
  });
});

describe('for any documents', () => {
  const line = fc.oneof(
    fc.constantFrom(
      '# A',
      '## A',
      '## B',
      '### A',
      '- name: x',
      '- **Name:** y',
      'name: z',
      '```',
      '---',
      '',
      '===',
      'text',
    ),
    fc.string({ unit: 'binary' }),
  );
  const text = fc.array(line, { maxLength: 60 }).map((lines) => lines.join('\n'));
  const documents = fc
    .tuple(...IDENTITY_FILES.map((file) => fc.option(text.map((content) => ({ file, text: content })))))
    .map((some) => some.filter((document) => document !== null));

  it('the packet has the same bytes in any order and at each compilation', () =>
    fc.assert(
      fc.property(documents, fc.infiniteStream(fc.nat()), (some, dice) => {
        const keys = new Map(some.map((document) => [document, dice.next().value as number]));
        const shuffled = [...some].sort((a, b) => (keys.get(a) ?? 0) - (keys.get(b) ?? 0));
        expect(JSON.stringify(compileIdentity(shuffled))).toBe(JSON.stringify(compileIdentity(some)));
      }),
    ));

  it('the packet is bounded and well-formed, and its tokens are counted', () =>
    fc.assert(
      fc.property(documents, fc.integer({ min: 1, max: 200 }), (some, times) => {
        const long = some.map(({ file, text: content }) => ({ file, text: content.repeat(times) }));
        const { packet } = compileIdentity(long);
        expect(packet?.tokens ?? 0).toBeLessThanOrEqual(MAX_IDENTITY_TOKENS);
        expect(packet?.tokens).toBe(packet === null ? undefined : estimateTokens(packet.text));
        expect(packet?.text.isWellFormed() ?? true).toBe(true);
      }),
    ));

  it('a document never changes earlier ones', () =>
    fc.assert(
      fc.property(text, text, (soul, user) => {
        const alone = packetOf({ soul });
        if (alone !== undefined) expect(packetOf({ soul, user })?.startsWith(alone)).toBe(true);
      }),
    ));
});
