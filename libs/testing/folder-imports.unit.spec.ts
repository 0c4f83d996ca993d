import { describe, expect, it } from '@jest/globals';
import { findCircularImports } from './folder-imports.js';

const imports = (...pairs: readonly string[]) =>
  pairs.map((pair) => {
    const [from = '', to = ''] = pair.split(' ');
    return { from, to, files: pair };
  });

describe('imports between folders', () => {
  it('that are part of a circle are reported, with their files', () =>
    expect(findCircularImports(imports('a b', 'b c', 'c d', 'd b', 'd e'))).toEqual(['b c', 'c d', 'd b']));

  it('without a circle are accepted, also if two ways lead to one folder', () =>
    expect(findCircularImports(imports('a b', 'a c', 'b d', 'c d'))).toEqual([]));
});
