import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { createProseLinter } from './lint-prose.mjs';

interface Finding {
  readonly ruleId: string;
  readonly message: string;
  readonly loc: { readonly start: { readonly line: number } };
}
interface ProseLinter {
  lintText(text: string, file: string): Promise<{ readonly messages: readonly Finding[] }>;
}
const linter = (createProseLinter as () => ProseLinter)();

const findings = async (text: string, file: string): Promise<string[]> =>
  (await linter.lintText(text, file)).messages.map(({ ruleId, loc }) => `${loc.start.line} ${ruleId}`);

const long = `This sentence\n${'is so '.repeat(12)}\nand then it ends.`;

describe('the prose linter', () => {
  it.each([
    ['sentence-length', `Short.\n\n${long}\n`],
    ['sentence-punctuation', 'First.\n\nOne thing: it has two; and three; and more.\n'],
    ['clause-subject', 'First.\n\nWhat a client sends is checked.\n'],
    ['words', 'First.\n\nThe queue is drained anew.\n'],
  ])('reports %s in Markdown', async (rule, text) => {
    await expect(findings(text, 'page.md')).resolves.toEqual([`3 ${rule}`]);
  });

  it.each([
    ['sentence-length', `// ${long.replaceAll('\n', '\n// ')}`],
    ['sentence-punctuation', '// One thing: it has two; and three; and more.'],
    ['clause-subject', '// What a client sends is checked.'],
    ['doc-comment-opening', '/** Answers the size. */'],
    ['words', '/** Retries\n * for somebody. */'],
    ['words', "log('the lease is passed over');"],
    ['words', 'log(`session ${id} was passed over`);'],
    ['comment-width', `// ${'word '.repeat(19)}and some.`],
  ])('reports %s in code', async (rule, text) => {
    const found = await findings(`const before = 1;\n${text}\n`, 'file.ts');
    expect(found.map((line) => line.split(' ')[1])).toEqual([rule]);
  });

  it('reports each banned phrase, also across the lines of a comment', async () => {
    const { rules } = parse(readFileSync(join(import.meta.dirname, 'words.yml'), 'utf8')) as {
      readonly rules: readonly { readonly specs: readonly { readonly from: string }[] }[];
    };
    for (const { specs } of rules) {
      const phrase = specs[0]?.from ?? '';
      const comment = `/**\n * Waits. It ${phrase.split(' ').join('\n * ')} now.\n */\n`;
      await expect(findings(comment, 'file.ts')).resolves.toEqual([expect.stringMatching(/ words$/)]);
    }
  });

  it('accepts plain sentences, questions, code spans and short strings', async () => {
    const text = [
      '/**',
      ' * Returns the lease of a session. Throws `LOG.FENCED: whoever` when it was lost.',
      ' *',
      ' * What happens twice? The second call has no effect.',
      ' */',
      "export const key = 'anew';",
    ].join('\n');
    await expect(findings(text, 'file.ts')).resolves.toEqual([]);
    await expect(findings('Use `beside` as a name.\n', 'page.md')).resolves.toEqual([]);
  });
});
