import { describe, expect, it } from '@jest/globals';
import { estimateFile, fileBound } from './file-tokens.js';

const image = (width: number, height: number) => ({ mediaType: 'image/png', width, height }) as const;

describe('the bound of an image', () => {
  // Figures that the vendors document for these sizes.
  it.each([
    ['claude-sonnet-4-5', 200, 200, 54],
    ['claude-sonnet-4-5', 1_092, 1_092, 1_590],
    ['claude-sonnet-4-5', 8_000, 8_000, 1_600],
    ['anthropic/claude-opus-4.7', 2_000, 1_500, 3_888],
    ['gpt-4o', 1_024, 1_024, 765],
    ['gpt-4o', 2_048, 4_096, 1_105],
    ['gpt-4o-mini', 1_024, 1_024, 25_501],
    ['gpt-4.1-mini', 1_024, 1_024, 1_659],
    ['gpt-4.1-nano', 1_800, 2_400, 3_572],
    ['gemini-2.5-flash', 384, 384, 258],
    ['gemini-2.5-flash', 960, 540, 1_548],
  ])(
    'of %s for %i x %i pixels is at least the %i tokens that are charged',
    (model, width, height, tokens) => {
      const bound = fileBound(image(width, height), model);
      expect(bound).toBeGreaterThanOrEqual(tokens);
      expect(bound).toBeLessThan(tokens + 2_500);
    },
  );

  it('of an unknown model, or without a size, is the largest of the rules', () => {
    const known = ['claude-sonnet-4-5', 'gpt-4o', 'gemini-2.5-pro'];
    for (const model of known)
      expect(fileBound(image(3_000, 2_000), 'a-local-model')).toBeGreaterThanOrEqual(
        fileBound(image(3_000, 2_000), model),
      );
    expect(fileBound({ mediaType: 'image/png' }, 'claude-3-haiku')).toBeGreaterThan(1_600);
  });

  it('of a document counts the image of each page, and its text', () => {
    const pdf = { mediaType: 'application/pdf', pages: 3, textBytes: 9_000 } as const;
    expect(fileBound(pdf, 'claude-sonnet-4-5')).toBeGreaterThanOrEqual(3 * 1_600 + 9_000);
    expect(fileBound(pdf, 'gpt-4o')).toBeGreaterThanOrEqual(3 * 765 + 9_000);
    expect(estimateFile(pdf)).toBeGreaterThan(3_000);
  });
});
