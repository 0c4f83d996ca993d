/** Text in place of a secret. */
export const REDACTED = '[redacted]';

/** Maximum length of a logged text, UTF-16 units. */
const MAX_TEXT = 8_192;
/** Further text that is searched, so that a cut does not hide the end of a secret. */
const OVERLAP = 512;

// The password of a URL, a bearer token, secrets in a query and in fields, and the formats of
// well-known keys.
const URL_PASSWORD = /(?<=[a-z0-9+.-])(:\/\/[^\s/:@]*:)[^\s/@]+(@)/gi;
const BEARER = /\b(Bearer|Basic)\s+[\w.~+/=-]{16,}/gi;
const QUERY =
  /([?&](?:key|api[-_]?key|access_token|token|auth|code|sig|signature|password|secret)=)[^&\s"'<>]{6,}/gi;
const FIELD = /\b(x-api-key|api[_-]?key|authorization)(["']?\s*[:=]\s*["']?)[^\s"',;]{16,}/gi;
/** Prefix, separator, secret: Anthropic, OpenAI, Stripe, Slack, GitHub, GitLab, and our own keys. */
const PREFIXED = /\b(sk|pk|rk|xox[abeoprs]|xapp|gh[pousr]|github_pat|glpat|ak)([-_])[\w-]{12,}/g;
/** The same of npm, Hugging Face, Groq and the admin key, whose prefixes are also those of names. */
const LONG = /\b(npm|hf|gsk|antiphon)(_)(?:[A-Za-z0-9]{30,}|[\w-]{43}(?![\w-]))/g;
/** Google's API keys and OAuth tokens, AWS key ids, and SendGrid's keys. */
const FIXED = /\b(AIza[\w-]{30,}|ya29\.[\w-]{20,}|A(?:KIA|SIA)[A-Z0-9]{16}|SG\.[\w-]{16,}\.[\w-]{16,})/g;
// A part ends where another one could begin, so that none begins within it.
// eslint-disable-next-line house/linear-regexp
const JWT = /\beyJ(?:(?!-eyJ)[\w-]){8,}\.[\w-]{8,}(?:\.[\w-]*)?/g;
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;

/** Replaces what looks like a secret in any text. */
const redactFormats = (text: string): string =>
  text
    .replace(PRIVATE_KEY, REDACTED)
    .replace(URL_PASSWORD, `$1${REDACTED}$2`)
    .replace(BEARER, `$1 ${REDACTED}`)
    .replace(QUERY, `$1${REDACTED}`)
    .replace(FIELD, `$1$2${REDACTED}`)
    .replace(JWT, REDACTED)
    .replace(FIXED, REDACTED)
    .replace(PREFIXED, `$1$2${REDACTED}`)
    .replace(LONG, `$1$2${REDACTED}`);

/** Replaces what looks like a secret in free text, and cuts it to a maximum length. */
export const redactText = (text: string): string => {
  const safe = redactFormats(text.slice(0, MAX_TEXT + OVERLAP));
  return text.length > MAX_TEXT ? `${safe.slice(0, MAX_TEXT)}… (${text.length} characters)` : safe;
};

// A provider may echo a key in a form of its own: short, masked (`sk-ab***yz`), or after the name
// of a field. These forms also match file names and ordinary words, so that log lines are not
// searched for them.
const ECHOED_KEY = /\b(?:sk|pk|rk|gsk|xai|key|or)-[A-Za-z0-9_*.…-]{4,}/g;
const ECHOED_SCHEME = /\b(Bearer|Basic)\s+[^\s"',;]+/gi;
const ECHOED_FIELD =
  /\b(x-api-key|api[_-]?key|authorization)(["']?\s*[:=]\s*["']?)(?!\[redacted\])[^\s"',;]+/gi;

const HTML: Readonly<Record<string, string>> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' },
};
const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => HTML[character] ?? '');

/** Returns the encodings in which a text may have a secret. */
const encodingsOf = (secret: string): string[] => [
  secret,
  encodeURIComponent(secret),
  JSON.stringify(secret).slice(1, -1),
  ...(['base64', 'base64url', 'hex'] as const).map((form) => Buffer.from(secret).toString(form)),
  // Without its padding, which not each encoder writes.
  Buffer.from(secret).toString('base64').replaceAll('=', ''),
  escapeHtml(secret),
];

/** Returns the secrets of this length or more in all their encodings, the longest first. */
export const needlesOf = (secrets: readonly string[], minLength: number): readonly string[] =>
  [...new Set(secrets.filter(({ length }) => length >= minLength).flatMap(encodingsOf))].sort(
    (a, b) => b.length - a.length,
  );

/** Replaces exact texts. */
export const redactNeedles = (text: string, needles: readonly string[]): string =>
  needles.reduce((clean, needle) => clean.replaceAll(needle, REDACTED), text);

export type Redact = (text: string) => string;

/**
 * Creates a function that removes secrets from a text of a provider: the given ones in their usual
 * encodings, and all that looks like one. A secret under 4 characters would match ordinary words.
 */
export const createRedactor = (secrets: readonly string[]): Redact => {
  const needles = needlesOf(secrets, 4);
  return (text) =>
    redactFormats(
      redactNeedles(text, needles)
        .replace(ECHOED_KEY, REDACTED)
        .replace(ECHOED_SCHEME, `$1 ${REDACTED}`)
        .replace(ECHOED_FIELD, `$1$2${REDACTED}`),
    );
};
