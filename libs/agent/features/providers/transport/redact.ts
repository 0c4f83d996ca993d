export type Redact = (text: string) => string;

const REDACTED = '[redacted]';

/** Shapes of keys, masked ones (`sk-ab***yz`) included, for what a provider echoes in a form of its own. */
const KEY_SHAPES = [
  /\b(?:sk|pk|rk|gsk|xai|key|or)-[A-Za-z0-9_*.…-]{4,}/g,
  /\b(Bearer|Basic)\s+[^\s"',;]+/gi,
  /\b(x-api-key|api[_-]?key|authorization)(["']?\s*[:=]\s*["']?)(?!\[redacted\])[^\s"',;]+/gi,
];

/** The forms in which a body may echo a secret. Shorter secrets than 4 characters would redact ordinary words. */
const formsOf = (secret: string): string[] =>
  secret.length < 4
    ? []
    : [
        secret,
        encodeURIComponent(secret),
        JSON.stringify(secret).slice(1, -1),
        Buffer.from(secret).toString('base64'),
      ];

/**
 * Takes secrets out of text that leaves the process: the given ones in their usual encodings,
 * and whatever else looks like a key.
 */
export const createRedactor = (secrets: readonly string[]): Redact => {
  const forms = [...new Set(secrets.flatMap(formsOf))].sort((a, b) => b.length - a.length);
  return (text) => {
    let clean = text;
    for (const form of forms) clean = clean.replaceAll(form, REDACTED);
    const [shape, scheme, field] = KEY_SHAPES as [RegExp, RegExp, RegExp];
    return clean.replace(shape, REDACTED).replace(scheme, `$1 ${REDACTED}`).replace(field, `$1$2${REDACTED}`);
  };
};
