/** Expressions that take other engines exponential time. */
export const HOSTILE_PATTERNS: readonly string[] = [
  ...['(a+)+$', '([a-zA-Z]+)*$', '(a|aa)+$', '(a|a?)+$', '(.*a){20}$', '^(a?){50}a{50}$', '(a*)*b'],
  ...['^(([a-z])+.)+[A-Z]([a-z])+$', '(x+x+)+y', 'a{1,1000}b', '((a{0,50}){0,10}){0,2}b', '\\s+$'],
  ...[
    '(?:a|b|ab)*c',
    '(a+){10}(a+){10}z',
    '.*.*.*.*=.*',
    '(?i)(a+)+K$',
    '(\\w+\\s?)*;',
    '(?=a)+b',
    '(a)\\1+',
  ],
  ...['(((((a*)*)*)*)*)*z'],
];
