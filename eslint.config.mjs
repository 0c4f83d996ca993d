import tseslint from 'typescript-eslint';
import { functionLength } from './tools/lint/function-length.mjs';
import { independentTests } from './tools/lint/independent-tests.mjs';
import { linearRegexp } from './tools/lint/linear-regexp.mjs';
import { namedWaits } from './tools/lint/named-waits.mjs';
import { moduleBoundaries } from './tools/lint/module-boundaries.mjs';
import { plainNames } from './tools/lint/plain-names.mjs';

const SOURCES = ['apps/**/*.ts', 'apps/dashboard/**/*.tsx', 'libs/**/*.ts', 'tools/**/*.ts'];
const BROWSER = ['apps/dashboard/**/*.ts', 'apps/dashboard/**/*.tsx'];
const PURE = ['libs/*/domain/**/*.ts', 'libs/*/workflows/**/*.ts', 'libs/kernel/**/*.ts'];
const SPECS = ['**/*.spec.ts', '**/testing/**/*.ts', 'libs/testing/**/*.ts', 'apps/*-e2e/**/*.ts'];
// Errors of these folders end calls of tools.
const CAUSED = [
  'libs/agents/domain/**/*.ts',
  ...['agent-directory', 'agent-reach', 'agent-rights', 'model-choice', 'own-call-limits', 'spawn-plan'].map(
    (name) => `libs/agents/features/lifecycle/${name}.ts`,
  ),
  'libs/files/**/*.ts',
  'libs/native-tools/**/*.ts',
  'libs/conversation/features/tools/file-access.ts',
  'libs/orchestration/*/plans/**/*.ts',
];
// Linted as text by tools/lint/house-rules.unit.spec.ts; they are in no TypeScript project.
const FIXTURES = ['**/lint-fixture*.ts'];

const ENVIRONMENT = {
  selector: "MemberExpression[object.name='process'][property.name='env']",
  message: 'only the configuration reads process.env',
};
const INJECTED = 'time, ids and randomness come in from outside';

export default tseslint.config(
  {
    ignores: [
      '**/dist/',
      '**/generated/',
      '**/node_modules/',
      '.antiphon/',
      '.nx/',
      'benchmarks/node_modules/',
      'coverage/',
      'plugins/**/assembly/',
      'examples/plugins/**/assembly/',
    ],
  },
  {
    files: SOURCES,
    extends: [tseslint.configs.recommended, tseslint.configs.stylistic],
    plugins: {
      house: {
        rules: {
          'module-boundaries': moduleBoundaries,
          'function-length': functionLength,
          'plain-names': plainNames,
          'linear-regexp': linearRegexp,
          'named-waits': namedWaits,
          'independent-tests': independentTests,
        },
      },
    },
    rules: {
      'house/module-boundaries': ['error', { workspace: import.meta.dirname }],
      'max-lines': ['error', { max: 250, skipBlankLines: true, skipComments: true }],
      'house/function-length': ['error', { max: 60 }],
      'house/plain-names': 'error',
      'house/linear-regexp': 'error',
      'max-depth': ['error', 3],
      'max-params': ['error', 8],
      complexity: ['error', 15],
      eqeqeq: 'error',
      'no-console': 'error',
      'no-restricted-syntax': ['error', ENVIRONMENT],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/consistent-indexed-object-style': 'off',
      '@typescript-eslint/no-extraneous-class': 'off',
      '@typescript-eslint/no-empty-function': 'off',
    },
  },
  {
    files: SOURCES,
    ignores: FIXTURES,
    languageOptions: {
      parserOptions: { project: './tsconfig.spec.json', tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': [
        'error',
        { checksVoidReturn: { arguments: false, attributes: false } },
      ],
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
    },
  },
  {
    // A failed call of a tool or a model records the cause of its error.
    files: CAUSED,
    ignores: [...SPECS, '**/testing/**', 'libs/files/features/**/*.handler.ts', '**/files-follower.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ENVIRONMENT,
        {
          selector:
            'CallExpression[callee.name=/^(invalid|forbidden|notFound|rejected|conflict|exhausted)$/]',
          message: 'a fact records the cause of this error: use causedError',
        },
      ],
    },
  },
  {
    files: ['libs/providers/features/**/*.ts'],
    ignores: SPECS,
    rules: {
      'no-restricted-syntax': [
        'error',
        ENVIRONMENT,
        {
          selector: "NewExpression[callee.name='ModelFailure'] Property[key.name='message']",
          message: 'a fact records the cause of this failure: give `why`',
        },
      ],
    },
  },
  {
    files: BROWSER,
    languageOptions: {
      parserOptions: { project: './apps/dashboard/tsconfig.json', tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
          message: 'untrusted text is rendered as elements, never as HTML',
        },
        {
          selector: 'MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML)$/]',
          message: 'the policy of the page refuses HTML strings',
        },
      ],
    },
  },
  {
    files: PURE,
    ignores: [...SPECS, 'libs/kernel/ports.ts', 'libs/kernel/async/**'],
    rules: {
      'no-restricted-globals': [
        'error',
        ...['Date', 'crypto', 'process', 'setTimeout', 'setInterval', 'fetch', 'performance'].map((name) => ({
          name,
          message: INJECTED,
        })),
      ],
      'no-restricted-properties': ['error', { object: 'Math', property: 'random', message: INJECTED }],
    },
  },
  {
    // Command-line surfaces speak to a person; the environment contract of a process is read where
    // it starts.
    files: [
      'apps/cli/**/*.ts',
      'tools/stack/**/*.ts',
      'apps/*/src/*main.ts',
      'libs/platform/config/**/*.ts',
      'libs/platform/service-host/**/*.ts',
    ],
    rules: { 'no-console': 'off', 'no-restricted-syntax': 'off' },
  },
  {
    files: SPECS,
    rules: {
      'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
      'house/function-length': 'off',
      // Specs read their own texts.
      'house/linear-regexp': 'off',
      'house/named-waits': 'error',
      'house/independent-tests': 'error',
      'no-restricted-syntax': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
    },
  },
  // They define the waits, and test what a sleep is made of.
  { files: ['libs/testing/waits.ts', 'libs/kernel/async/*.spec.ts'], rules: { 'house/named-waits': 'off' } },
);
