// Conventional Commits with a subject of at most 72 characters; the reason stands in the body.
export default {
  extends: ['@commitlint/config-conventional'],
  rules: {
    'header-max-length': [2, 'always', 72],
    'type-enum': [
      2,
      'always',
      ['build', 'chore', 'ci', 'docs', 'feat', 'fix', 'perf', 'refactor', 'revert', 'style', 'test'],
    ],
    'body-max-line-length': [2, 'always', 100],
    'footer-max-line-length': [0],
  },
};
