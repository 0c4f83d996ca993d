#!/usr/bin/env node
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { resolve } from 'node:path';
import { TextlintKernelDescriptor } from '@textlint/kernel';
import markdown from '@textlint/textlint-plugin-markdown';
import prh from 'textlint-rule-prh';
import { createLinter, loadLinterFormatter } from 'textlint';
import codeComments from './code-comments.mjs';
import {
  clauseSubject,
  commentWidth,
  docCommentOpening,
  sentenceLength,
  sentencePunctuation,
} from './rules.mjs';

const ROOT = resolve(import.meta.dirname, '../../..');
const WORDS = resolve(import.meta.dirname, 'words.yml');

const interop = (module) => module.default ?? module;

/** Returns the textlint linter with the house's rules. */
export const createProseLinter = () =>
  createLinter({
    cwd: ROOT,
    descriptor: new TextlintKernelDescriptor({
      configBaseDir: ROOT,
      filterRules: [],
      plugins: [
        { pluginId: 'markdown', plugin: interop(markdown), options: true },
        { pluginId: 'code-comments', plugin: codeComments, options: true },
      ],
      rules: [
        { ruleId: 'words', rule: interop(prh), options: { rulePaths: [WORDS] } },
        { ruleId: 'sentence-length', rule: sentenceLength, options: true },
        { ruleId: 'sentence-punctuation', rule: sentencePunctuation, options: true },
        { ruleId: 'clause-subject', rule: clauseSubject, options: true },
        { ruleId: 'doc-comment-opening', rule: docCommentOpening, options: true },
        { ruleId: 'comment-width', rule: commentWidth, options: true },
      ],
    }),
  });

/** Returns the files of the repository whose prose is checked; `paths` narrows them. */
export const proseFiles = (paths = []) =>
  execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--', ...(paths.length ? paths : ['.'])], {
    cwd: ROOT,
    encoding: 'utf8',
  })
    .split('\n')
    .filter(
      (file) => /\.(md|tsx?|mts|mjs|cjs)$/.test(file) && !/lint-fixture|tools\/lint\/prose\//.test(file),
    );

const HELP = `Checks the prose of Markdown, comments and strings (CONTRIBUTING.md has the rules).

  npm run lint:prose                    the whole repository
  npm run lint:prose -- docs README.md  these paths
`;

const main = async (args) => {
  if (args.includes('--help')) return process.stdout.write(HELP);
  const results = (await createProseLinter().lintFiles(proseFiles(args))).filter(
    ({ messages }) => messages.length,
  );
  const formatter = await loadLinterFormatter({ formatterName: 'unix' });
  const count = results.reduce((sum, { messages }) => sum + messages.length, 0);
  if (count > 0) process.stdout.write(formatter.format(results));
  process.stdout.write(`prose: ${count} findings\n`);
  process.exitCode = count > 0 ? 1 : 0;
};

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
