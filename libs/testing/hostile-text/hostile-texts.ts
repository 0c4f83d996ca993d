import fc from 'fast-check';

/** Pieces that parsers, diffs and matchers read in a special way, alone or repeated. */
const PIECES = [
  ...[
    ' ',
    '\t',
    '\n',
    '\r\n',
    '\r',
    '\u2028',
    '\u00a0',
    '\ufeff',
    '\0',
    'a',
    'ab',
    'Aa',
    '0',
    '9.',
    '-',
    '_',
  ],
  ...[
    '[',
    ']',
    '{',
    '}',
    '(',
    ')',
    '<',
    '>',
    '[]',
    '{}',
    '[[',
    '{{',
    '}}',
    '{{a',
    '"',
    "'",
    '`',
    '```\n',
    '~~~\n',
  ],
  ...[
    '- [ ] a\n',
    '- [x] ',
    '* ',
    '1. ',
    '# ',
    '## a\n',
    '> ',
    '| a ',
    '---\n',
    '***',
    '__',
    '<!-- s1 -->',
    '<!--',
    '-->',
  ],
  ...[
    'a: 1\n',
    'a:',
    '? ',
    '- ',
    '&a ',
    '*a ',
    '!!',
    '|\n',
    '\\',
    '\\\\',
    '\\ ',
    '\\u0000',
    '**/',
    '*',
    '?',
    '!',
    '[a-',
    '#',
  ],
  ...[
    '/',
    '//',
    '../',
    '%2e',
    '.',
    ',',
    ';',
    ':',
    '=',
    '@',
    'https://a',
    'a@b',
    'a.b/',
    'data: {"a":1}\n\n',
    'event: x\n',
  ],
  ...[
    'my name is a. ',
    'I said ',
    'i live in b ',
    'let me hand you to ',
    '/tool a {}\n',
    '/tool ',
    '/then\n',
    'Bearer ',
    'eyJ-',
    'sk-',
  ],
  ...[
    '\u0315\u0300',
    '\u0300',
    'e\u0301',
    '\u200d',
    '👩‍👩‍👧',
    '\ud800',
    '\udc00',
    'İ',
    'ß',
    'ﷺ',
    '\u202e',
    '中',
    '\u{e0101}',
  ],
] as const;

/** Sizes of texts, UTF-16 units. Each size is half as frequent as the one before it. */
const SIZES = [200, 4_000, 60_000, 400_000, 1_500_000, 8 * 1024 * 1024] as const;

export interface HostileText {
  readonly text: string;
  /** How it is made, for a report. */
  readonly recipe: string;
}

const piece = fc.oneof(
  { arbitrary: fc.constantFrom(...PIECES), weight: 6 },
  {
    arbitrary: fc
      .array(fc.constantFrom(...PIECES), { minLength: 2, maxLength: 4 })
      .map((parts) => parts.join('')),
    weight: 3,
  },
  { arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 6 }), weight: 1 },
);

/** A run of one piece. Most texts have one to three of them. */
const run = fc.record({ piece, share: fc.integer({ min: 1, max: 8 }) });

interface Recipe {
  readonly size: number;
  readonly start: string;
  readonly runs: readonly { readonly piece: string; readonly share: number }[];
  readonly end: string;
}

const toText = (recipe: Recipe): HostileText => {
  const { size, start, runs, end } = recipe;
  const shares = runs.reduce((sum, { share }) => sum + share, 0);
  const parts = runs.map(({ piece: unit, share }) =>
    unit.repeat(Math.max(1, Math.floor((size * share) / shares / unit.length))),
  );
  return { text: `${start}${parts.join('')}${end}`.slice(0, size + 64), recipe: JSON.stringify(recipe) };
};

const recipes = (largest: number): fc.Arbitrary<Recipe> => {
  const sizes = SIZES.filter((size) => size <= largest);
  const weighted = sizes.map((size, index) => ({
    arbitrary: fc.constant(size),
    weight: 2 ** (SIZES.length - index),
  }));
  const runs = fc.array(run, { minLength: 1, maxLength: 3 });
  return fc.record({ size: fc.oneof(...weighted), start: piece, runs, end: piece });
};

/** Number of texts of a property: a sample, or what `ANTIPHON_HOSTILE_TEXTS` says. */
export const hostileCount = (sample: number): number =>
  Number(process.env['ANTIPHON_HOSTILE_TEXTS'] ?? sample);

/** Seed of the texts, the same in each run unless `ANTIPHON_HOSTILE_SEED` names another one. */
const hostileSeed = (): number => Number(process.env['ANTIPHON_HOSTILE_SEED'] ?? 20_261_126);

/** Time of a property of 10,000 texts, ms. */
export const HOSTILE_TIMEOUT_MS = 4 * 3_600_000;

/**
 * Returns the texts of a property, always the same ones: runs of blanks, brackets, lines, marks and
 * characters of formats, of up to `largest` units. They are made one after another.
 */
export function* sampleHostileTexts(sample: number, largest = 8 * 1024 * 1024): Generator<HostileText> {
  const drawn = fc.sample(recipes(largest), { numRuns: hostileCount(sample), seed: hostileSeed() });
  for (const recipe of drawn) yield toText(recipe);
}
